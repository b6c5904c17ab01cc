"""Rows of model lines, read and written in the caller's transaction; light: no Arrow, no NumPy.

May not know the chain or the trainer's lock, which call it with a connection.
"""
