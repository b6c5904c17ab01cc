"""Rows of windows for a program outside any job: planned, decoded and mixed as for a trainer.

It starts a driver and data executors and takes their minibatches. May not train or publish, and
nothing in here may write to FOREBAY_HOME: what a reading has to store is in a separate home.
"""
