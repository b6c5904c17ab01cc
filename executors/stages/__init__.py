"""The stages of one window, as `forebay stage` and Airflow's tasks run them, and `forebay why`.

Each can be called again at any time. May not import a process: jobs are started by command.
"""
