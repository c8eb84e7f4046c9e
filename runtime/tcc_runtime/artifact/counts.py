"""Race counts and residuals of a run: those of the artifact, or changed by the settings.

The settings can raise counts bottom-up: by a factor, to test surrogate mode, or by rounding if
counts are wider than the run may use (docs/spec/race.md, sections 4 and 10).  The residual part of
M(v) = -beta C(prefix) + residual is Q31.32 and depends only on the state (section 8).  Recipe R2
reads it from a column; R1 takes one logarithm for each distinct cost of a call.
Cost: nothing, or one pass over all edges for each factor, width and artifact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import MAX_ROUND_BITS
from tcc_certs.formats.codec import parse_decimal
from tcc_certs.race.enclosures import call_residual
from tcc_runtime.artifact.load import Artifact

# The residual part of M(v), by recipe.


def residual_bound(artifact: Artifact, recipe: str) -> Callable[[int], int]:
    """Return the function from a state to the residual part of its M, Q31.32."""
    if recipe == "r2":
        return artifact.residual_to_go
    envelope = step_envelope(artifact)

    def per_step(q: int) -> int:
        return artifact.rank(q) * envelope

    return per_step


def cost_bound(artifact: Artifact, recipe: str) -> Callable[[int], int]:
    """Return the function from a state to the least cost of its plans, in nano-units; for R1 a
    lower bound.
    """
    if recipe == "r2":
        return artifact.cost_to_go
    step = min([0, *artifact.cost_low])

    def per_step(q: int) -> int:
        return artifact.rank(q) * step

    return per_step


def step_envelope(artifact: Artifact) -> int:
    """Return max(0, the largest residual of any call), Q31.32."""
    beta, bits = artifact.manifest.beta, artifact.manifest.fraction_bits
    distinct = sorted(set(zip(artifact.cost_low, artifact.weight, strict=True)))
    return max([0, *(call_residual(beta, cost, weight, bits) for cost, weight in distinct)])


_FEW_BYTES: Final = 1 << 28  # below this, a coarse bound is enough


def race_counts(artifact: Artifact, inflate: str, bits: int | None = None) -> Callable[[int], int]:
    """Return the function from a state to the race count m that the run uses.

    Args:
        inflate: an exact decimal, at least 1.
        bits: the bits to which counts are rounded up, 1.. 63; None: not rounded.
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
    """Return the bits to which a run rounds its counts up; None if no count is too wide.

    No count grows along an edge, so the count of the root is the widest.  For rounded counts, the
    bits of the mantissa are compared, in a set those of the widest member.

    Args:
        inflate: an exact decimal, at least 1.
        count_bits: the most bits of a count; 0: no limit.
        members: the states at which the run begins.
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
    """Return a bound of the bytes of counts that a run stores and the artifact does not; cached.

    A run may store for each state its m, the slack, and the masses of its children.  For rounded
    counts all their bits are counted, because they are expanded.  For other counts only the bits
    that the inflation adds are counted.  A result of 2^28 is only an upper bound.

    Args:
        inflate: an exact decimal, at least 1.
        bits: the bits to which counts are rounded up; None: not rounded.
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
        # Each of d + 1 roundings adds a factor of at most 1 + 2^(1-b), and (1 + x)^d <= 2^(3 d x /
        # 2).
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
    """Return m'(q) = max(ceil(F m(q)), the sum of the masses of the children by m') for every
    state.
    """
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
    """Return the mantissa and the exponent of each state's count, rounded up to `bits` bits.

    m'(q) is the least number of so many bits that is not below m(q), nor below the sum of the
    masses of the children by m'.  So it is a bound in the sense of artifact.md, section 7.

    Args:
        count: returns m of a state.
        bits: 1 .. 63.

    Raises:
        Rejected: C202: a rank of an unverified artifact is too large; or see
            :meth:`Artifact.edges`.
    """
    places, weight = artifact.manifest.fraction_bits, artifact.weight
    ranks = artifact.automaton.rank
    mantissas: list[int] = []
    exponents: list[int] = []
    for q, rank in enumerate(ranks):
        # possible in an unverified artifact; the rank bounds the length of the numbers here
        if rank > q:
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
