"""What the training of one window keeps in files: checkpoints, scores, and the series of its steps.

May not know the model line that the window belongs to, beyond the names of its links.
"""
