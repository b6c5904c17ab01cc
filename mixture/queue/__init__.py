"""The prioritised queue of a data executor: buffers, priorities (Primus Eq. 4), floors.

Runs in data executors. Batches pass through unchanged. May not know features, metrics, models or
who takes the rows.
"""
