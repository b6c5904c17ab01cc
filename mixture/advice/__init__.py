"""Which paradigm suits a data set: how complete its fresh labels are, and what was measured there.

It takes arrays and facts. It may not read a storage, know windows or start TensorFlow, and what
decides imports no NumPy, so that any process can ask.
"""
