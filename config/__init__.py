"""Declare: sources, streams, datasets, models, jobs and pipelines, read from YAML with positions."""
