"""Source kind `iceberg`: one table; pyiceberg plans, our Parquet loop reads.

Runs where windows are planned and in data executors. May not know another kind, but for how
`parquet` plans and reads files.
"""
