"""Airflow DAGs made from pipeline YAML: one DAG per pipeline, one run per window.

Parsed by every task of every run: as light as operators/. May not read data or know jobs.
"""
