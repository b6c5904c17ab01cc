"""The files of one window while it is trained: checkpoints, scores, steps, dead letters.

May not know the model line that the window belongs to, beyond the names of its links.
"""
