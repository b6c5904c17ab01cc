"""Commands for who writes declarations.

They run in the command line and call config and datatasks. A command may not know another one.
"""
