"""The job contract: request, status, handle and the files through which processes of a job meet.

Light, since Airflow's operators import it: no Arrow, no NumPy, no gRPC, and no process of a job.
"""
