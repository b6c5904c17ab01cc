"""Sequences of everything that happens to a pipeline, and an independent count after each step."""
