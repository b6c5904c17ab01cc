"""Commands about windows: plan, train, explain, ask why, forget.

They run in the command line; `run` and `stage` start jobs. A command may not know another one.
"""
