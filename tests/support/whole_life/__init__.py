"""A window's whole life in one process, which dies at any statement and any durable write."""
