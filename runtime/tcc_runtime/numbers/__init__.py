"""Numbers of a run: arrivals and keys, computed by the rungs of a ladder.  A rung that cannot
decide leaves the decision to the next.

Text: docs/spec/race.md, sections 5, 7 and 21.  Every rung makes items of the frontier by the same
methods, and knows the error of its numbers:

- :mod:`tcc_runtime.numbers.floats`: enclosures by floating-point numbers, for runs without a
  ledger;
- :mod:`tcc_runtime.numbers.fixed`: integers of fixed size with a proven error, which decide all but
  one published number in 2^19;
- :mod:`tcc_runtime.numbers.mpfr`: MPFR, with increasing precision.

An undecided comparison or rounding is decided by computing the item's path again on the next rung
(:mod:`tcc_runtime.numbers.rung`).  So the result does not depend on the rung.
"""
