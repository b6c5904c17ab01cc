"""The trainer's process: takes minibatches window by window, learns, seals and links.

Opens no source: rows come from data executors alone. Never imports another process's room.
"""
