"""The results of a run, for people, made from the summary alone.

Runs in the command line. May not read home, ledger or model line: everything it shows is in that
file.
"""
