"""Test suites for kinds of sources that live outside this repository.

Nothing that runs may import it, and it may not know a kind.
"""
