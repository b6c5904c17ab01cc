"""One model line on disk: links of the chain, checkpoints, scores, steps, and the line's lease.

May not know processes: whoever holds the lease writes.
"""
