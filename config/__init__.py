"""Declare: sources, streams, datasets, models, jobs, pipelines; YAML with positions.

Runs in every process that reads declarations. May not know storage, plans or processes: it reads
files and says what is wrong with them.
"""
