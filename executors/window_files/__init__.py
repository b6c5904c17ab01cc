"""The files of one window while it is trained: checkpoints, scores, steps, dead letters.

Written by the trainer; read in stages and in the command line too. May not know the model line that
the window belongs to, beyond the names of its links.
"""
