"""Source kind `parquet`: files below a folder, cut by event time or by path.

Reading Parquet is here for other kinds too; which files there are is each kind's own to know.
"""
