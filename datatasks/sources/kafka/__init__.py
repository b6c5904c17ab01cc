"""Source kind `kafka`: one topic, read in whole record batches; a producer helper beside it.

Runs where windows are planned and in data executors. May not know another kind; what a message
holds, its format knows.
"""
