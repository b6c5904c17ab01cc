"""Where state is stored: the folder FOREBAY_HOME and the paths below it.

Knows paths only: who writes a file there knows what is in it.
"""
