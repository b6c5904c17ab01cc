"""The serving path of a line: models that a model server reads, and the way back to an older one.

Runs in commands and in the publish stage's process. The row of what serves comes first; the path
follows it, after a kill with whatever runs next. Nothing in here may judge whether a model is good.
"""
