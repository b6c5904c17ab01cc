"""Event scores: each event judged by the model that would have answered it, and what follows.

It picks rows and models while a window is trained, reads the answers back, and decides what serves.
May not know processes, stages or TensorFlow: who trains hands the models in.
"""
