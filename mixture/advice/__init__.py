"""Which paradigm suits a data set: from how complete its fresh labels are, and from measurements.

Runs in the command line and in stages. It takes arrays and facts. It may not read storage, know
windows or start TensorFlow, and the code that decides imports no NumPy, so that any process can use
it.
"""
