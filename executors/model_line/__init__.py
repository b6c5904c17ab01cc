"""One model line in the database: links of the chain, what serves, and the line's lease.

Used by the trainer, by stages and by the command line. May not know processes: the holder of the
lease writes.
"""
