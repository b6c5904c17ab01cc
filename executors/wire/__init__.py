"""Communication between processes: messages, control calls, frames, sockets, tokens, limits.

Used by all processes of a job. May not know who calls or answers.
"""
