"""The trainer's process: takes minibatches window by window, trains, seals and links.

May not open a source: rows come only from data executors. Never imports another process's room.
"""
