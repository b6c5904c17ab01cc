"""From windows to plans: operations in their order, borders, listings, sources opened.

Runs in the process that plans: a stage of Airflow, or the command line. May not know who reads.
"""
