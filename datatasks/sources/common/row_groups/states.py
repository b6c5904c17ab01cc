"""What is known of the times in a row group; a light module, since footers are read in a child."""

# Both bounds; nothing until its times are read; that it has none.
KNOWN, TO_READ, ALL_NULL = range(3)
