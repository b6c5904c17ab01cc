"""The commands of `forebay`: one module for each, imported only when it is called.

They run in the command line's process. A command reads its arguments, calls the rooms below and
prints. It may not know other commands.
"""
