"""What deferred tasks wait for. A trigger checks and wakes its task; it never does the work.

May not know operators, and may not query Airflow: a triggerer runs all its triggers in one loop.
"""
