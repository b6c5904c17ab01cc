"""Airflow DAGs made from pipeline YAML: one DAG per pipeline, one run per window."""
