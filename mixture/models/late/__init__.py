"""Corrects labels that come late, and guards against streams whose labels stop.

Runs in the trainer. A paradigm gets a loss from it, and whether to learn now. May not know
learners, seeds and export.
"""
