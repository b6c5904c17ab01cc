"""Commands about what is stored and what runs: jobs, the home, its garbage.

They run in the command line. A command may not know another one.
"""
