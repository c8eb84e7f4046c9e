"""Side-by-side measurements; ``python -m benchmarks NAME`` prints one table.

A time says something about one machine on one day; ratios within one run say more.  Operation
counts, which are the same everywhere, are asserted in the tests; times are only reported here.
"""
