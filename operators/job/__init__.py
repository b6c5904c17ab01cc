"""A job in a task's log: its progress as lines, its end as an error or a summary.

Reads the job's folder and the model line through their types; may not start or end a job.
"""
