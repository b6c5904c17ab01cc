"""Forebay trains recommendation models on history and on what happened a second ago, together."""

__version__ = "0.1.0"
