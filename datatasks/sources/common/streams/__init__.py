"""Borders of windows in streams that count offsets.

Runs where windows are planned. May not know any kind.
"""
