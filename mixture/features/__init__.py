"""Features: their layout, and two definitions of them: for Arrow batches and as TensorFlow ops.

May not know queues, metrics, models or files. Only `tensors` imports TensorFlow.
"""
