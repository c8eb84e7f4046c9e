"""Residuals of a core, read straight off its trees: what `check --core` walks beside the automaton.

``letters`` groups calls that the core does not tell apart; ``terms`` are expressions and their
derivatives; ``outlook`` bounds what a term can still do; ``duties`` are the limits, signatures,
requires and forbids as counters and flags.  Nothing here is shared with a compiler.
"""
