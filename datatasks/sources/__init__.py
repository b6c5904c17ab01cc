"""Source kinds: a room for each storage system, message formats, and what they share.

They run where windows are planned and in data executors. A kind may not know another one, but for
`iceberg`, whose data files are Parquet files.
"""
