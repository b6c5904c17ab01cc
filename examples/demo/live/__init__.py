"""The demo's third act: a line that is followed for two minutes.

Runs in the demo's process, and `forebay run --follow` beside it. Knows nothing of Airflow.
"""
