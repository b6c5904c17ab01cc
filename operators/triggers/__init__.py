"""What deferred tasks wait for. A trigger looks, and wakes its task; it never does the work."""
