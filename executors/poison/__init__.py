"""Tasks that kill their reader: who is suspected, how that is examined, and what reads them.

May not know leases, buffers and the wire; of a process that died it knows the signal and the marks.
"""
