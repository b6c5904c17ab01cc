"""The facts of a home: SQLite, or the PostgreSQL that FOREBAY_DATABASE names.

Used by every process. Knows nothing of what the rows of the tables mean.
"""
