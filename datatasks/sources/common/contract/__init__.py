"""The `Source` contract: what a kind must do, and what it is given for it.

Used where windows are planned and in data executors. May not know any kind.
"""
