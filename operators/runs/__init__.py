"""What a task knows of its own run, of other runs, and what tasks leave for each other."""
