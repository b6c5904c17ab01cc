"""The embedded Airflow: its components, settings, jobs and REST API."""
