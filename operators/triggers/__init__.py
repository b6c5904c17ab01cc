"""What deferred tasks wait for. A trigger looks, and wakes its task; it never does the work.

May not know operators, and may not ask Airflow: a triggerer runs all its triggers in one loop.
"""
