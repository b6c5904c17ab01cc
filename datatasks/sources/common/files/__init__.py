"""Files below a path: listed, bundled into tasks, known again by their version.

Used where windows are planned and in data executors. May not know any kind.
"""
