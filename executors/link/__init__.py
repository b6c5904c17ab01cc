"""What a process of a job says of itself and asks of the others: one protocol, one implementation.

Used by all processes of a job. May not know what they do. Only `local`, `sockets` and `tokens` know
folders and Unix sockets.
"""
