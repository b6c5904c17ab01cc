"""PostgreSQL from a wheel: its programs, where its data is, the server's command.

Used by the keeper. May not start anything, and knows nothing of Airflow.
"""
