"""PostgreSQL from a wheel: its programs, where its data is, the server's command.

May not start anything, and knows nothing of Airflow.
"""
