"""How the tables came to be, revision by revision, for Alembic.

A new home does not come from here: `identity.make_tables` makes the newest tables. A test holds
that both ways end in the same database. Whoever changes `tables.py` adds `versions/revision_N.py`
and raises `tables.REVISION`; the test prints the operations that are missing.

Nothing may import it: no command and no process of Forebay needs Alembic.
"""
