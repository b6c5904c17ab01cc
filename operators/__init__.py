"""Airflow operators: one stage of one window each, as a face on the job contract."""
