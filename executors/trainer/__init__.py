"""The trainer's process: takes minibatches window by window, learns, seals and links.

May not open a source: rows come from data executors alone. Never imports another process's room.
"""
