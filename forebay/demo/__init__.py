"""The demo: real flights as two batch sources and a stream, one command, nothing faked."""
