"""A job in a task's log: its progress as lines, its end as an error or a summary.

Runs in the processes of Airflow's tasks and in its triggerer. Reads the job and the model line
through their types; may not start a job.
"""
