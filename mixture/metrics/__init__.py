"""Metrics of scores against labels, with intervals, and verdicts in words.

Pure: arrays in, numbers out.
"""
