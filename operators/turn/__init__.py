"""What a task knows about its window's turn to be trained: Airflow's runs and the model line.

Runs in the processes of Airflow's tasks and in its triggerer. It observes, and remembers how long
it has waited. It may not decide: `forebay.executors.stages.turn` does, for tasks and stages alike.
"""
