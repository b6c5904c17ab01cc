"""Test suites for source kinds that live outside this repository.

They run in the process of the test. No production code may import it, and it may not know any kind.
"""
