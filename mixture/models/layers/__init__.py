"""What models are built of: embedding tables, towers and optimisers.

Run in the trainer. TensorFlow operations whose state we save ourselves. May not know paradigms,
feeds and labels.
"""
