"""Models in TensorFlow: embeddings, towers, paradigms, their train step and export.

The only room that may import TensorFlow at module level, beside `features.tensors`.
"""
