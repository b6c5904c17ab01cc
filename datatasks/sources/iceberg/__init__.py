"""Source kind `iceberg`: one table; pyiceberg plans, our Parquet loop reads."""
