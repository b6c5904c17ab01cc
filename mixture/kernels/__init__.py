"""Compiled loops over Arrow's memory: hashing, buckets, vocabularies, numbers.

May not know features, models or files of a job. numba compiles these once for each machine
(`build`); processes load what it made (`library`) and never import numba.
"""
