"""PostgreSQL from a wheel: its programs, the place of its data, the server's command.

May not start anything, and knows nothing of Airflow.
"""
