"""Plan: windows become data tasks through timer, source, joiner and sink operations.

May not know models, features or who reads the tasks.
"""
