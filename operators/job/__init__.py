"""A job in a task's log: its progress as lines, its end as an error or a summary."""
