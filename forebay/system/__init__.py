"""Processes and their supervision, locks, files, messages, names, instants: what all layers share.

Used by every process. Knows nothing of sources and models, of windows and jobs only their keys;
imports no third-party package but pydantic and psutil.
"""
