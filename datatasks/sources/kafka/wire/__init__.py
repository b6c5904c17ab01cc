"""Record batches and the messages in them, as bytes.

Runs where windows are planned and in data executors. May not know topics or a client.
"""
