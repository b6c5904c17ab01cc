"""What travels between processes: messages, control calls, frames of rows, the job's token.

May not know who calls or answers.
"""
