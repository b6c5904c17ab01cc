"""The job contract: ids, requests, rows, handles and the folders through which processes meet.

Airflow's operators import it, so it stays light: no Arrow, no NumPy, no gRPC. It may not know what
a job trains, and imports no process of a job.
"""
