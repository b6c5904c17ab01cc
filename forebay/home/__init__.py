"""Where state is stored: the folder FOREBAY_HOME, the paths below it, and their format.

Used by every process. Knows no content: whoever writes a file there knows what is in it.
"""
