"""What the kernels' object file offers: names, and how many int64 each takes. Imports nothing.

Every argument is an int64, most of them addresses; each entry returns an int64.
"""

from __future__ import annotations

ENTRIES = {"view_columns": 5, "encode_dense": 9, "encode_ids": 9, "encode_list": 8}
