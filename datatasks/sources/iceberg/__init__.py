"""Source kind `iceberg`: one table; pyiceberg plans, our Parquet loop reads.

May not know another kind, but for how `parquet` plans and reads files.
"""
