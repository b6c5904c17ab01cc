"""Airflow DAGs made from pipeline YAML: one DAG per pipeline, one run per window.

Imported by every task of every run, so as light as operators/. May not read data or know jobs.
"""
