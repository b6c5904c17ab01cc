"""Whether declarations fit each other: each problem with its place and the way out.

Runs in the command line and in Airflow's DAG processor. May not know storage or plans.
"""
