"""Columns, times and row ids, whatever they come from.

Used where windows are planned and in data executors. May not know any kind.
"""
