"""Which rows of which files a window has, from what their footers say, or would say.

Used by threads and processes that plan windows. May not know any kind.
"""
