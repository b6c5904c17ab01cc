"""Odd declarations, files and messages by a seed, and what commands of one process say of them.

What is valid is read by another program too, and the values are compared. What is not has to be
refused at a file and line or by the name of an object: no traceback, and no exit code 4.
"""
