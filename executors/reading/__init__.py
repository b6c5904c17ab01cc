"""Rows of windows for a program that is no role of a job: planned, decoded and mixed as for one.

It starts a driver and data executors and takes their minibatches. May not train or publish, and
nothing in here may write to FOREBAY_HOME: what a reading has to keep is in a home of its own.
"""
