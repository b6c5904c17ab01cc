"""Test suites for source kinds that live outside this repository.

No production code may import it, and it may not know any kind.
"""
