"""The tasks of a pipeline's DAG: one operator for each stage of a window.

Run in the processes of Airflow's tasks. They start `forebay stage` and turn its end into theirs;
they may not plan, train or open data.
"""
