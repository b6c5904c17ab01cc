"""Rows of model lines, read and written in the caller's transaction; light: no Arrow, no NumPy.

Used by the trainer, by stages and by the command line. May not know the chain or the trainer's
lock, which call it with a connection.
"""
