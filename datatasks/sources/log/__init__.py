"""Source kind `log`: an append-only directory of Arrow segments, and its writer.

May not know another kind.
"""
