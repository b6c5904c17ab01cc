"""A Kafka broker for the demo and the tests: its program, starting and stopping it.

May not know the other rooms of embedded/, nor what is written to its topics.
"""
