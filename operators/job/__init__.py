"""A job in a task's log: its progress as lines, its end as an error or a summary.

Reads the job and the model line through their types; may not start a job.
"""
