"""Communication between processes: messages, control calls, frames, sockets, tokens, limits.

May not know who calls or answers.
"""
