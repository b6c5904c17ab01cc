"""The prioritised queue of a data executor: buffers, priorities (Primus Eq. 4), floors.

May not know features or models.
"""
