"""Whether it may be a window's turn, as far as a task can see without starting a process.

The decision itself is `forebay.executors.stages.turn`.
"""
