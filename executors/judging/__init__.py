"""Event scores: each event judged by the model that would have answered it, and the gate.

Runs in the trainer, in stages and in the command line. It picks rows and models while a window is
trained, reads the scores back, and decides what serves. May not know processes, stages or
TensorFlow: the trainer passes the models in.
"""
