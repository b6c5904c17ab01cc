"""Children: begun, known again by another process, watched, ended, begun again.

Used by supervisors, by the embedded keeper and by the command line. Knows nothing of roles.
"""
