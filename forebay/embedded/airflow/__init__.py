"""The embedded Airflow from outside: settings, commands of its components, its REST API, its end.

May not import Airflow, which runs in processes of its own, nor know how components are kept alive.
"""
