"""Races: which children a popped item makes, and which uniforms they take.

Text: docs/spec/race.md, sections 5, 8, 14, 15 and 18.  A race asks a rung for the numbers of
what it makes (:mod:`tcc_runtime.numbers`); the loop knows neither.

- :mod:`tcc_runtime.races.coupled`: the coupled race, the rest race, the anchored, the literal one;
- :mod:`tcc_runtime.races.fallback`: the fallback, which claims nothing;
- :mod:`tcc_runtime.races.interface`: what the loop asks of each.
"""
