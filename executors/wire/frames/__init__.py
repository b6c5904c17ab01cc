"""How frames of rows travel from a data executor to the trainer, by two transports.

Both carry the same frames for the same credits; what a frame means, who may have it and what a
break leads to is decided above them, and nothing in here may know of windows or models.
"""
