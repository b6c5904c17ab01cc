"""How trained windows did: scores joined with labels, metrics, the summary of a range.

Reads plans and model lines; trains nothing, writes nothing and starts no TensorFlow.
"""
