"""How trained windows did: scores joined with labels, metrics, dead letters, a range's summary.

Runs in stages and in the command line. It reads plans, model lines and jobs'
folders. It may not train, write or start TensorFlow, and does not know its caller: `forebay run`, a
stage or a report.
"""
