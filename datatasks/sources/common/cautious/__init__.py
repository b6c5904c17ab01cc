"""One cautious reader: what may kill is read unit by unit in a child, and what kills it is named.

Used where footers are planned with, and in data executors. May not know any kind.
"""
