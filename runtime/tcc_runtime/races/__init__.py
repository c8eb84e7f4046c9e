"""Races: the children that a popped item makes, and the uniforms that they use.

Text: docs/spec/race.md, sections 5, 8, 14, 15 and 18.  A race gets the numbers of its items from a
rung (:mod:`tcc_runtime.numbers`).  The loop depends on neither.

- :mod:`tcc_runtime.races.coupled`: the coupled, the rest, the anchored and the literal race.
- :mod:`tcc_runtime.races.fallback`: the fallback, which claims nothing.
- :mod:`tcc_runtime.races.interface`: the interface of a race for the loop.
"""
