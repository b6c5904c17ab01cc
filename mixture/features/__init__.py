"""Features: their layout, and their definition twice: for Arrow batches and as TensorFlow ops.

May not know queues, metrics, models or files. Only `tensors` imports TensorFlow.
"""
