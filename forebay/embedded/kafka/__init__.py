"""A Kafka broker for the demo and the tests: its program, starting and stopping it.

Runs in the command line, and in the broker's own process. May not know the other rooms of
embedded/, nor what is written to its topics.
"""
