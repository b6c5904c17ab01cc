"""The data executor's process: reads leased tasks and serves minibatches.

May not know models or the model line; never imports another process's room.
"""
