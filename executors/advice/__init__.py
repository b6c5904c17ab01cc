"""Advice on a pipeline: from a sample of its data before it trains, from its line afterwards.

Runs in the command line. It reads sources and what a model line has stored. It may not plan, train,
write or start TensorFlow, and every read of a source is bounded in rows, bytes and seconds.
"""
