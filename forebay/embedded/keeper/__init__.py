"""The keeper's process: it owns PostgreSQL and Airflow's components, and stops them when it ends.

May not know what Airflow's API is asked for beyond health; nobody imports it, `cluster` runs it.
"""
