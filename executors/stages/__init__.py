"""The stages of one window, as `forebay stage` and Airflow's tasks run them, and `forebay why`.

Every stage takes a `StageTarget`, can be called again at any time, and gives the same result.
The room may not know Airflow, and may not import a process of a job: jobs are started by command.
"""
