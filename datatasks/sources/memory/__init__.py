"""Source kind `memory`: tables of this process, for tests.

Runs in the process of the test. May not know another kind.
"""
