"""Rows of model lines, read and written inside somebody's transaction; light: no Arrow, no NumPy.

May not know the chain or the trainer's lock: they call it with a connection.
"""
