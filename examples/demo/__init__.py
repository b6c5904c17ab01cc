"""The demo: real flights as two batch sources and a stream, one command, nothing faked.

Runs in a process of its own, and starts what a user would. Nothing may know the demo; the module
that counts its rows imports nothing else from Forebay.
"""
