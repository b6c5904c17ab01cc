"""Metrics of scores against labels, with intervals, and verdicts as text.

Run in the trainer, in stages and in the command line. Arrays in, numbers out. A figure that does
not exist is None, for example the AUC of rows that are all negative: it is never reported as 0 or
0.5. May not know features, queues, models or files.
"""
