"""Models in TensorFlow: embeddings, towers, paradigms, their train step and export.

The only room that imports TensorFlow at module level, beside `features.tensors`; it is imported by
make_learner once TensorFlow was started. May not know processes, windows or sources.
"""
