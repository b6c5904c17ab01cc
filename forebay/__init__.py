"""Forebay trains recommendation models on history and on fresh events, together."""

__version__ = "0.1.0"
