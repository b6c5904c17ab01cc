"""Looks at sources and plans from which nothing follows: samples, lags, changes, why.

Runs in the command line and in stages. May not know jobs or models.
"""
