"""Source kind `kafka`: one topic, read in whole record batches; a producer helper beside it."""
