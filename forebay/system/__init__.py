"""Processes and their supervision, locks, files, messages, names, instants: what all layers share.

Used by every process. Of windows and jobs it knows how their keys are written; it imports no
third-party package but pydantic and psutil.
"""
