"""Scoring raw rows with an exported model, as `forebay score` does.

Runs in the command line and in the trainer. May not know how a model was trained: it only has a
SavedModel and its features.json.
"""
