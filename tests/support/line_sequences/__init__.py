"""Sequences of what people do to a declaration and its lines, in one process, and their judge.

`support.sequences` kills operations and moves borders under one declaration; here the declaration
itself changes and is changed back, and data comes and goes. Jobs run in this process with the
trainer's own code: only the driver, the wire and TensorFlow are left out.
"""
