"""Declare: sources, streams, datasets, models, jobs, pipelines; YAML with positions."""
