"""The data driver's process: who reads which task, from which position.

May not know models, minibatches or how rows are read; never imports another process's room.
"""
