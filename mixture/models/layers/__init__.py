"""What models are built of: embedding tables, towers and optimisers.

TensorFlow operations whose state we save ourselves. May not know paradigms, feeds and labels.
"""
