"""Scoring raw rows with an exported model, as `forebay score` does.

May not know how a model was trained: it only has a SavedModel and its features.json.
"""
