"""Children: begun, limited, known again by another process, watched, ended, begun again.

Used by every process that starts a child: supervisors, the embedded keeper, the command line, data
executors, plans. Knows nothing of roles.
"""
