"""Features: their layout, and two definitions of them: for Arrow batches and as TensorFlow ops.

Runs in data executors, in the trainer and in whatever serves a model. May not know queues, metrics,
models or files. Only `tensors` imports TensorFlow.
"""
