"""Source kind `parquet`: files below a folder, cut by event time or by path.

Runs where windows are planned and in data executors. May not know another kind: one whose files are
Parquet too plans and reads them through this room.
"""
