"""Payload formats of messages: a decoder for each, found by name.

They run where streams are planned and in data executors. May not know where a payload comes from.
"""
