"""Race counts and residuals of a run: the artifact's own, or what the settings make of them.

Counts may be raised bottom-up: by a factor, to stress surrogate mode, or by rounding where they are
wider than the run may use (docs/spec/race.md, sections 4 and 10).  The residual part of M(v) =
-beta C(prefix) + residual is Q31.32 and a function of the state alone (section 8): recipe R2 reads
a column, R1 takes one logarithm for each distinct cost of a call.
Cost: nothing, or one pass over all edges, once for each factor, width and artifact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import MAX_ROUND_BITS
from tcc_certs.formats.codec import parse_decimal
from tcc_certs.race.enclosures import call_residual
from tcc_runtime.artifact.load import Artifact

# Residual part of M(v), by recipe.


def residual_bound(artifact: Artifact, recipe: str) -> Callable[[int], int]:
    """The function from a state to the residual part of its M, Q31.32."""
    if recipe == "r2":
        return artifact.residual_to_go
    envelope = step_envelope(artifact)

    def per_step(q: int) -> int:
        return artifact.rank(q) * envelope

    return per_step


def cost_bound(artifact: Artifact, recipe: str) -> Callable[[int], int]:
    """The function from a state to the least that its plans cost, nano-units; of r1 a bound."""
    if recipe == "r2":
        return artifact.cost_to_go
    step = min([0, *artifact.cost_low])

    def per_step(q: int) -> int:
        return artifact.rank(q) * step

    return per_step


def step_envelope(artifact: Artifact) -> int:
    """max(0, the largest residual of any call), Q31.32."""
    beta, bits = artifact.manifest.beta, artifact.manifest.fraction_bits
    distinct = sorted(set(zip(artifact.cost_low, artifact.weight, strict=True)))
    return max([0, *(call_residual(beta, cost, weight, bits) for cost, weight in distinct)])


_FEW_BYTES: Final = 1 << 28  # what need not be told any nearer


def race_counts(artifact: Artifact, inflate: str, bits: int | None = None) -> Callable[[int], int]:
    """The function from a state to the m that the run uses.

    Args:
        inflate: an exact decimal, at least 1.
        bits: that a count is rounded up to, 1 .. 63; None: none is.
    """
    if bits is not None:
        name = f"counts.{inflate}.{bits}"
        pairs = artifact.kept.get(name)
        if not isinstance(pairs, tuple):
            pairs = artifact.kept[name] = rounded(artifact, race_counts(artifact, inflate), bits)
        mantissa, exponent = pairs
        return lambda q: mantissa[q] << exponent[q]
    if inflate == "1":
        return artifact.race_count
    name = f"counts.{inflate}"
    found = artifact.kept.get(name)
    if not isinstance(found, list):
        found = artifact.kept[name] = inflated(artifact, inflate)
    return found.__getitem__


def rounded_to(
    artifact: Artifact, inflate: str, count_bits: int, members: Sequence[int]
) -> int | None:
    """The bits that a run rounds its counts up to; None where none is wider than it may use.

    No count grows along an edge, so the root's is the widest of all that a run may meet.  Of
    rounded counts it is the mantissa's bits that count, in a set those of the widest member.

    Args:
        inflate: an exact decimal, at least 1.
        count_bits: most bits of a count that is used; 0 is no limit.
        members: the states that the run begins at.
    """
    if not count_bits:
        return None
    if inflate == "1" and artifact.manifest.round_counts is not None:
        wide = max(map(artifact.mantissa_bits, members))
    else:
        count, ranks = race_counts(artifact, inflate), artifact.automaton.rank
        bits, rank = artifact.manifest.fraction_bits, max([ranks[q] for q in members])
        wide = sum([count(q) << bits * (rank - ranks[q]) for q in members]).bit_length()
    return min(count_bits, MAX_ROUND_BITS) if wide > count_bits else None


def written_bytes(artifact: Artifact, inflate: str, bits: int | None = None) -> int:
    """What a run may hold of counts that the artifact does not: of each state its m, the slack and
    the masses of its children; kept with the artifact.

    Of rounded counts that is all of them, as F bits for each call that may follow are written out;
    of others what the inflation adds, at most the bits of the factor and one.  What is little by
    the greatest exponent alone is not told any nearer.

    Args:
        inflate: an exact decimal, at least 1.
        bits: that a count is rounded up to; None: none is.
    """
    name = f"written.{inflate}.{bits}"
    found = artifact.kept.get(name)
    if not isinstance(found, int):
        found = artifact.kept[name] = _written_bytes(artifact, inflate, bits)
    return found


def _written_bytes(artifact: Artifact, inflate: str, to: int | None) -> int:
    rounded = artifact.manifest.round_counts is not None
    if not rounded and inflate == "1" and to is None:
        return 0
    factor, places = parse_decimal(inflate, "inflate", Code.LEDGER_SCHEMA)
    more = 0 if inflate == "1" else (factor // 10**places + 2).bit_length()
    if to is not None:
        # Each of d + 1 roundings is by 1 + 2^(1-b) at most, and (1 + x)^d <= 2^(3 d x / 2).
        more += (3 * (artifact.rank(artifact.root) + 1) >> to) + 2
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


def rounded(
    artifact: Artifact, count: Callable[[int], int], bits: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Of each state the mantissa and the exponent of its count, rounded up to so many bits.

    m'(q) is the least such number at or above m(q) and the sum of the masses with m' of the
    targets, so it is a bound as artifact.md, section 7, has them.

    Args:
        count: m of a state.
        bits: 1 .. 63.

    Raises:
        Rejected: C202, or as the artifact's edges, of an unverified one.
    """
    places, weight = artifact.manifest.fraction_bits, artifact.weight
    ranks = artifact.automaton.rank
    mantissas: list[int] = []
    exponents: list[int] = []
    for q, rank in enumerate(ranks):
        if rank > q:  # of an unverified artifact; it says how long the numbers here get
            raise Rejected(Code.RANK, f"rank[{q}]", f"at most {q}", rank)
        total = (1 << places * rank) if artifact.accepts(q) else 0
        for call, target in artifact.edges(q):
            mass = weight[call] * mantissas[target]
            ahead = max(0, places * (rank - 1 - ranks[target]))
            total += mass << exponents[target] + ahead
        total = max(total, count(q))
        drop = max(0, total.bit_length() - bits)
        mantissa = -(-total >> drop)
        if mantissa >> bits:
            mantissa, drop = mantissa >> 1, drop + 1
        mantissas.append(mantissa)
        exponents.append(drop)
    return mantissas, exponents
