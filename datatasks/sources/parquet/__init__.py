"""Source kind `parquet`: files below a folder, cut by event time or by path.

May not know another kind: one whose files are Parquet too plans and reads them through this room.
"""
