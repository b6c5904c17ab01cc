"""The numbers with which Python tells kernels what to do: layouts of columns, views and plans.

Plain numbers: neither numba nor Arrow is imported here. All tables are int64.
"""

from __future__ import annotations

# How the values of a column are stored.
INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32 = range(1, 8)
FLOAT32, FLOAT64, BOOL, TIMESTAMP, STRING, LARGE_STRING = range(8, 14)

# A row of the table of columns: which column of the batch, and how it is stored.
# ITEM: of values, or of the items of lists. INDEX: of a dictionary's indices, else 0.
COLUMN, ITEM, INDEX, IS_LIST = range(4)
COLUMN_WIDTH = 4

# A row of the table of views: where the values of a column are. Fields with LIST in their name are
# about the rows of a list column, all others about its items. Addresses are 0 where there is
# nothing.
CODE, START, VALID, VALUES, TEXTS, INDEX_CODE, INDEX_START, INDEX_VALID, INDICES = range(9)
LIST_START, LIST_VALID, LIST_OFFSETS, ITEMS = range(9, 13)
VIEW_WIDTH = 13

# A row of a plan: what to compute from a view. VIEW: its row. METHOD and PART: below.
# HASH, CROSS: MODULUS is that of the fingerprint, INVERSE is 2**64 // MODULUS, of 1
# 2**64 - 1, as the int64 of the same bits.
# BUCKETISE: TABLE has COUNT doubles.
# VOCABULARY: TABLE has COUNT + 1 places of the values' texts in MORE, FINGERPRINTS those of the
# texts, and SLOTS has MODULUS (a power of two) places of values, from 1.
# CROSS, IDENTITY: TABLE has the COUNT views to join.
VIEW, METHOD, PART, MODULUS, TABLE, COUNT, MORE, FINGERPRINTS, SLOTS, INVERSE = range(10)
PLAN_WIDTH = 10
NUMERIC, LOG1P, HASH, BUCKETISE, VOCABULARY, CROSS, IDENTITY = range(1, 8)
NO_PART, HOUR_PART, WEEKDAY_PART = range(3)

# Optimisers square gradients, which grow with these numbers, and larger squares overflow float32.
# Towers still train with 1e20 but not with 1e25, which ends a job without naming the row.
NUMBER_MAX = 1e19
# What a kernel found: in a column, or (TOO_LARGE) a number of a feature beyond NUMBER_MAX.
MAYBE_NOT_STORED_FINITE, TOO_LARGE = 1, 2


# Every argument is an int64, most of them addresses; each entry returns an int64.

ENTRIES = {"view_columns": 5, "encode_dense": 9, "encode_ids": 9, "encode_list": 8}
