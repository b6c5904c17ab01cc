"""Source kind `memory`: tables of this process, for tests."""
