"""Source kind `memory`: tables of this process, for tests.

May not know another kind.
"""
