"""PostgreSQL from a wheel: its programs, the place of its data, the server's command."""
