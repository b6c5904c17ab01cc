"""What Forebay runs for its user on one machine: Airflow on PostgreSQL (`forebay up`), Kafka.

Runs in the command line and in the keeper. May not know what a pipeline trains: it starts programs
and jobs, and reads their answers.
"""
