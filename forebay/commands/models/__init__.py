"""Commands about trained models: list, score, report.

They run in the command line. A command may not know another one.
"""
