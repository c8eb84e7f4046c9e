"""Races: which children a popped item makes, and which uniforms they take.

Text: docs/spec/race.md, sections 5, 8, 14, 15 and 18.  A race asks a rung for the numbers of
what it makes (:mod:`tcc_runtime.numbers`); the loop knows neither.
"""
