"""Learning: which row comes next, what a model reads from it, what it has learned and seen.

Runs in data executors, in the trainer, and in commands that show or export what it made.
make_learner is on top and `models/` below it; `features/`, `queue/` and `metrics/` know nothing of
either, nor of each other. At the bottom are the contracts: learner, minibatch, row sums.
"""
