"""What several commands need: arguments, output, the line that shows what goes on.

Runs in the command line alone. May not know a command.
"""
