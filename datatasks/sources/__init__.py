"""Source kinds: one module for each storage system."""
