"""What shows Forebay at work. It is not in the wheel, and Forebay knows nothing of it."""
