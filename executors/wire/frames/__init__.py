"""How frames of rows are sent from a data executor to the trainer, over two transports.

Both carry the same frames for the same credits; what a frame means, who may have it and what
happens after a break is decided above them, and nothing in here may know of windows or models.
"""
