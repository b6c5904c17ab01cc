"""What a stream said of events whose complete label comes later, found by event id.

Runs in the trainer. It reads score segments of a model line and keeps their ids in memory; nothing
is stored. It knows nothing of the trainer that asks.
"""
