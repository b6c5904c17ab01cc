"""The commands of `forebay`: one module for each, imported only when it is asked for.

A command reads its arguments, asks the rooms below and prints. It may not know another command.
"""
