"""The history of the tables, revision by revision, for Alembic.

A new home is not created from here: `identity.make_tables` creates the newest tables. A test checks
that both ways give the same database. Whoever changes `tables.py` adds `versions/revision_N.py` and
raises `tables.REVISION`; the test prints the operations that are missing.

Nothing may import it: no command and no process of Forebay needs Alembic.
"""
