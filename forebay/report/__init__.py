"""What a run came to, for people: made from the summary alone."""
