"""The demo through Airflow: its runs, a backfill, what the page shows live.

Runs in the demo's own process. May not know how the data was made.
"""
