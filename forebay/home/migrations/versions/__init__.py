"""One module for each revision of the tables, the oldest first.

A revision knows nothing of `tables.py`, which describes the newest tables: it stays as it was
released.
"""
