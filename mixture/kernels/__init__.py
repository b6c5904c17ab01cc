"""Compiled loops over Arrow's memory: hashing, buckets, vocabularies, numbers.

Run in data executors. May not know features, models or files of a job. numba compiles these once
per machine (`build`); processes load the result (`library`) and never import numba.
"""
