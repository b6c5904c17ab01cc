"""Airflow's runs: what a run's task has to do, which other runs exist, what tasks hand over.

May not know stages, triggers or turns, and queries Airflow only from inside a running task.
"""
