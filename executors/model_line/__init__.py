"""One model line in the database: links of the chain, what serves, and the line's lease.

May not know processes: the holder of the lease writes.
"""
