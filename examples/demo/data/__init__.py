"""The demo's data, written once.

Runs in the demo's own process. May not know jobs or Airflow.
"""
