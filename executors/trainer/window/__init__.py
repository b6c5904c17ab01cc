"""One window in a trainer: opened, learnt step by step, sealed, and ended as a link of the line.

May not choose windows or wait for rows, which is the loop's; knows nothing of other processes.
"""
