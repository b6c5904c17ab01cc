"""Tasks that kill their reader: which are suspected, how they are examined, and what reads them.

May not know leases, buffers and the wire; all it knows of a dead process is its signal and marks.
"""
