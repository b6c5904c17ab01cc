"""What models are built of: embedding tables, towers and optimisers.

TensorFlow operations whose state is ours to save. May not know paradigms, feeds and labels.
"""
