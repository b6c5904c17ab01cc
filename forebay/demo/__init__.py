"""The demo: real flights as two batch sources and a stream, one command, nothing faked.

Nothing may know the demo; what it counts rows with imports nothing else of Forebay.
"""
