"""The keeper's process: it owns PostgreSQL and Airflow's components, and stops them when it ends.

May not know any use of Airflow's API beyond health; nobody imports it, `cluster` runs it.
"""
