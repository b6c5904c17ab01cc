"""What several source kinds share: the `Source` contract, rows, times, files, row ids.

Used where windows are planned and in data executors. May not know any kind.
"""
