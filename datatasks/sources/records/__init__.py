"""Source kinds `json`, `csv` and `tfrecord`: files of records, cut by event time or by path.

They run where windows are planned and in data executors. May not know another kind. Such a file has
no footer: planning reads it once, to count its records and see their times; a task reads it from
its beginning. A record's number is its place in the file.
"""
