"""Side-by-side measurements; ``python -m benchmarks NAME`` prints one table.

A time depends on the machine and the day; ratios within one run are more reliable.  Tests assert
operation counts, which are the same everywhere.  Times are only reported here.
"""
