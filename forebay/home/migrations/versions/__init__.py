"""One module for each revision of the tables, the oldest first.

A revision knows nothing of `tables.py`, which is the newest: it stays as it was released.
"""
