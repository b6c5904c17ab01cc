"""Tasks that kill their reader: which are suspected, how they are examined, and what reads them.

Runs in data executors, and in children of theirs that may die. May not know leases, buffers and the
wire; all it knows of a dead process is its signal and marks.
"""
