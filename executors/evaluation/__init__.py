"""How trained windows did: scores joined with labels, metrics, the summary of a range.

Runs in the trainer, in stages and in the command line. It reads plans, model lines and jobs'
folders. It may not train, write or start TensorFlow, and does not know its caller: `forebay run`, a
stage or a report.
"""
