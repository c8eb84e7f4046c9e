"""Race counts of a run: the artifact's own, or made greater bottom-up to stress surrogate mode.

Text: docs/spec/race.md, section 4.  Cost: nothing, or one pass over all edges, once for each
factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tcc_certs.errors import Code
from tcc_certs.formats.decimals import parse_decimal
from tcc_runtime.artifact.load import Artifact

_FEW_BYTES: Final = 1 << 28  # what need not be told any nearer


def race_counts(artifact: Artifact, inflate: str) -> Callable[[int], int]:
    """The function from a state to the m that the run uses.

    Args:
        inflate: an exact decimal, at least 1.
    """
    if inflate == "1":
        return artifact.race_count
    name = f"counts.{inflate}"
    found = artifact.kept.get(name)
    if not isinstance(found, list):
        found = artifact.kept[name] = inflated(artifact, inflate)
    return found.__getitem__


def written_bytes(artifact: Artifact, inflate: str) -> int:
    """What a run may hold of counts that the artifact does not: of each state its m, the slack and
    the masses of its children; kept with the artifact.

    Of rounded counts that is all of them, as F bits for each call that may follow are written out;
    of others what the inflation adds, at most the bits of the factor and one.  What is little by
    the greatest exponent alone is not told any nearer.

    Args:
        inflate: an exact decimal, at least 1.
    """
    name = f"written.{inflate}"
    found = artifact.kept.get(name)
    if not isinstance(found, int):
        found = artifact.kept[name] = _written_bytes(artifact, inflate)
    return found


def _written_bytes(artifact: Artifact, inflate: str) -> int:
    rounded = artifact.manifest.round_counts is not None
    if not rounded and inflate == "1":
        return 0
    factor, places = parse_decimal(inflate, "inflate", Code.LEDGER_SCHEMA)
    more = 0 if inflate == "1" else (factor // 10**places + 2).bit_length()
    rows, bits = artifact.automaton, 0
    held = 3 * artifact.manifest.states + artifact.manifest.edges
    if held * (more + artifact.most_count_bits) >> 3 <= _FEW_BYTES:
        return _FEW_BYTES
    for q in range(artifact.manifest.states):
        held = 2 + max(0, rows.edge_start[q + 1] - rows.edge_start[q]) + artifact.accepts(q)
        bits += held * (more + (artifact.count_bits(q) if rounded else 0))
    return bits >> 3


def inflated(artifact: Artifact, inflate: str) -> Sequence[int]:
    """m'(q) = max(ceil(F m(q)), the sum of the masses with m' of the targets), for every state."""
    factor, places = parse_decimal(inflate, "inflate", Code.LEDGER_SCHEMA)
    unit = 10**places
    bits, weight = artifact.manifest.fraction_bits, artifact.weight
    ranks = artifact.automaton.rank
    found: list[int] = []
    for q, rank in enumerate(ranks):
        count = (1 << bits * rank) if artifact.accepts(q) else 0
        for call, target in artifact.edges(q):
            count += weight[call] * found[target] << max(0, bits * (rank - 1 - ranks[target]))
        found.append(max(count, -(-factor * artifact.race_count(q) // unit)))
    return found
