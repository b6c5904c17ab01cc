"""One window in a trainer: opened, trained step by step, sealed, and ended as a link of the line.

Runs in the trainer. May not choose windows or wait for rows, which the loop does; knows nothing of
other processes. Used from one thread.
"""
