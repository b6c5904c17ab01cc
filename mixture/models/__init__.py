"""Models in TensorFlow: embeddings, towers, paradigms, their train step and export.

Run in the trainer, and in a command that exports a kept checkpoint. The only room, besides
`features.tensors`, that imports TensorFlow at module level; make_learner imports it once TensorFlow
was started. May not know processes, windows or sources.
"""
