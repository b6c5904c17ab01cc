"""Airflow's runs: what a run's task has to do, which other runs exist, what tasks hand over.

Used in the processes of Airflow's tasks. May not know stages, triggers or turns, and queries
Airflow only from inside a running task.
"""
