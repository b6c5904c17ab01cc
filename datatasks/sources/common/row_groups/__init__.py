"""Which rows of which files a window has, from what their footers say, or would say.

Used where windows are planned. May not know any kind.
"""
