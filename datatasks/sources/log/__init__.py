"""Source kind `log`: an append-only directory of Arrow segments, and its writer.

Runs where windows are planned and in data executors; the writer, in the program that writes. May
not know another kind.
"""
