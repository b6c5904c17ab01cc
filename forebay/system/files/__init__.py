"""Files that survive a crash: written durably, locked, removed as whole trees.

Used by every process. Knows nothing of processes or of what is in a file.
"""
