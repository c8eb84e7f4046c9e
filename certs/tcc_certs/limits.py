"""Limits on whole files, cores and replays (D201).  Limits of a single format are in its module."""

from __future__ import annotations

MAX_HEADER_BYTES = 64 * 1024
MAX_TENSORS = 32
# The JSON coder of the standard library recurses: this is below the interpreter's limit of 1000.
MAX_JSON_DEPTH = 896
MAX_SAFE_INTEGER = 2**53 - 1
MAX_VERSION_BYTES = 1024  # of a grammar's version, in UTF-8
MAX_CALLS = 1 << 20
MAX_CORE_BYTES = 256 * 1024 * 1024
MAX_LINE_BYTES = 1 << 24
MAX_PRECISION_BITS = 4096
MAX_CORE_PAIRS = 2_000_000
MAX_CORE_STEPS = 64_000_000
# Memory for expanded race counts with the masses of all states' children: rounded counts in a run,
# and inflated counts also in a replay.  A run below this limit was measured to take 1.5 GB.
MAX_WRITTEN_BYTES = 1400 * 1024 * 1024
# Most edge steps for the tail of a truncated run: a fixed number, and a number for each edge.
FREE_TAIL_STEPS = 1 << 17
TAIL_STEPS_PER_EDGE = 8
# Most calls of a session that are computed again in total, after late outcomes.
MAX_REFOLDED = 1 << 20
