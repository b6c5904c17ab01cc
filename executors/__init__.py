"""Run: supervisor, driver, data executors and trainer as separate processes.

May not know Airflow, nor who submits a job: commands and operators call it from above.
"""
