"""Small real roles that do what a plan says, and a supervisor that runs them."""
