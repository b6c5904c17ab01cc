"""Processes and their supervision, locks, files, messages: what every layer needs from the system.

Used by every process. Knows nothing of windows, sources, jobs or models, and imports no third-party
package but pydantic and psutil.
"""
