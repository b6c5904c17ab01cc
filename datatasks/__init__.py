"""Plan: windows become data tasks through timer, source, joiner and sink operations.

Runs where windows are planned (a stage, or the command line) and in data executors. May not know
models, features or who reads the tasks.
"""
