"""The supervisor's process: it owns the other processes of one job, and ends with them.

May not know what those processes do: it starts commands and reads exit codes.
"""
