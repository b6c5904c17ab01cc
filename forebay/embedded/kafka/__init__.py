"""A Kafka broker for the demo and the tests: its program, its start and end.

May not know the other rooms of embedded/, nor what is written to its topics.
"""
