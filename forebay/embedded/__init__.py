"""Airflow, PostgreSQL and their keeper on one machine: `forebay up`, `down`, `status`."""
