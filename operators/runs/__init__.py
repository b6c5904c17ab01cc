"""Airflow's runs: what a task of one is asked for, what the others are, what tasks hand over.

May not know stages, triggers or turns, and asks Airflow only from inside a running task.
"""
