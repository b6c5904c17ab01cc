"""Borders of windows in streams that count offsets.

Runs in the process that plans windows. May not know any kind.
"""
