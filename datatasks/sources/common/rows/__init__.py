"""Rows on their way to a trainer: chunks, their places, what was read so far.

Runs where windows are planned and in data executors. May not know any kind.
"""
