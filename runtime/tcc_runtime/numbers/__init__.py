"""Numbers: arrivals and keys, by rungs of a ladder; what one leaves open goes to the next.

Text: docs/spec/race.md, sections 5, 7 and 21.  Every rung makes items of the frontier by the same
methods and knows how far off its numbers may be:

- :mod:`tcc_runtime.numbers.floats`: enclosures of the processor's numbers, for runs that nobody
  records;
- :mod:`tcc_runtime.numbers.fixed`: integers of fixed size with a proven error, which decide all but
  one published number in 2^19;
- :mod:`tcc_runtime.numbers.mpfr`: MPFR, at more and more bits.

A comparison or a rounding that is open is decided by walking the item's path again on the next
rung (:mod:`tcc_runtime.numbers.rung`), so what comes out does not depend on the rung.
"""
