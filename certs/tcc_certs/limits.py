"""Limits on whole files, cores and replays (D201); those of one form, as of lists, stand by it."""

from __future__ import annotations

MAX_HEADER_BYTES = 64 * 1024
MAX_TENSORS = 32
# The standard library's JSON coder recurses: this stays below the interpreter's own limit of 1000.
MAX_JSON_DEPTH = 896
MAX_SAFE_INTEGER = 2**53 - 1
MAX_VERSION_BYTES = 1024  # of a grammar's version, in UTF-8
MAX_CALLS = 1 << 20
MAX_CORE_BYTES = 256 * 1024 * 1024
MAX_LINE_BYTES = 1 << 24
MAX_PRECISION_BITS = 4096
MAX_CORE_PAIRS = 2_000_000
MAX_CORE_STEPS = 64_000_000
# What race counts take that are written out, with the masses of all states' children: rounded ones
# in a run, inflated ones in a replay too.  What a run takes below this has been measured: 1.5 GB.
MAX_WRITTEN_BYTES = 1400 * 1024 * 1024
# Steps over an edge that the tail of a cut run may take: so many, and so many for each edge.
FREE_TAIL_STEPS = 1 << 17
TAIL_STEPS_PER_EDGE = 8
# Calls of a session that are gone through again, all told, as outcomes become known late.
MAX_REFOLDED = 1 << 20
