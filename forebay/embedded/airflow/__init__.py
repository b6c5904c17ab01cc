"""The embedded Airflow from outside: settings, components' commands, REST API, and its jobs.

Runs in the command line and in the keeper. May not import Airflow, which runs in processes of its
own, nor know how components are kept alive.
"""
