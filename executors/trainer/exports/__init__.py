"""The model that serves: exported, checked against the trained one, inside a window or at its end.

Runs in the trainer's process, and in commands that export a window later. Knows no serving path.
"""
