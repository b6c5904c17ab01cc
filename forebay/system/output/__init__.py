"""What people and logs are shown: cut to a terminal, without secrets and control characters.

Used by every process. Knows nothing of who prints.
"""
