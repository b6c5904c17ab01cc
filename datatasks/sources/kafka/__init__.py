"""Source kind `kafka`: one topic, read in whole record batches; a producer helper beside it.

May not know another kind; what a message holds, its format knows.
"""
