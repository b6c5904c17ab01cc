"""The keeper's process: it owns PostgreSQL and Airflow's components, and ends with them."""
