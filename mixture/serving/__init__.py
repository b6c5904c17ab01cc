"""Scoring raw rows with an exported model, as `forebay score` does.

May not know how a model was trained: a SavedModel and the features.json beside it are all it has.
"""
