"""What several source kinds share: the `Source` contract, rows, times, files, row ids.

May not know any kind.
"""
