"""Commands about the embedded Airflow and Kafka.

They run in the command line and start daemons. A command may not know another one.
"""
