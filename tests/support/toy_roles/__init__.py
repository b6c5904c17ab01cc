"""Small real roles that follow a plan, and a supervisor that runs them."""
