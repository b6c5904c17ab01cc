"""Processes, locks, files and messages: what every layer needs of the operating system.

Knows nothing of windows, sources, jobs or models, and imports no third-party package but pydantic
and psutil.
"""
