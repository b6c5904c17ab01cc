"""Test suites for kinds of sources that live outside this repository."""
