"""Payload formats of messages: a decoder for each, found by name.

May not know where a payload comes from.
"""
