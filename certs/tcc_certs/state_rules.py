"""C1 to C6: one loop over the states, with all equations of a state before the next state.

Normative text: docs/spec/artifact.md, section 5.  An edge leads to an earlier state, whose values
are already checked.  So the edges of a state determine its values, and the loop never searches.  It
reports the first state with a wrong value, and the first rule in the order of the table.

:mod:`tcc_certs.rounded` computes rounded counts.  In an artifact for a gate (artifact.md, section
7) C3 checks rounded `plans`, and C4 does not apply.  Cost: linear in the edges, times the width of
the counts; one BLAKE3 digest for each state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, repeat
from struct import iter_unpack

from blake3 import blake3

from tcc_certs.call_rules import CallTable
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.artifact import MAX_ROUND_BITS, ArtifactFile, Automaton

# The place and the text of each rule, for a state q with edges (a, p): a call a and its target p.
_RULES: Mapping[Code, tuple[str, str]] = {
    # C1 partition
    Code.EDGE_START: ("edge_start[{}]", "from 0, never falling, to the number of edges"),
    Code.ACCEPT_VALUE: ("accept[{}]", "0 or 1"),
    Code.EDGE_RANGE: ("edge_call[{}]", "a call of the artifact"),
    Code.EDGE_ORDER: ("edge_call[{}]", "calls that increase; pairs where nondeterministic"),
    # C2 finiteness
    Code.TARGET_ORDER: ("edge_target[{}]", "less than its source"),
    Code.RANK: ("rank[{}]", "1 + max of d(p), 0 without edges"),
    # C3 plans: SuffixCountDP
    Code.PLAN_COUNT: ("plans[{}]", "accept + sum of N(p); rounded up for a gate"),
    # C4 race counts
    Code.RACE_COUNT: ("race_count[{}]", "accept 2^(F d(q)) + sum of W(a) 2^(F (d(q)-1-d(p))) m(p)"),
    # C5 bounds
    Code.COST_TO_GO: ("cost_to_go[{}]", "min of 0 if accept, cost_low(a) + h(p)"),
    Code.RESIDUAL_TO_GO: ("residual_to_go[{}]", "max of 0 if accept, r(a) + g(p)"),
    # C6 minimal
    Code.STATE_DIGEST: ("state_digest[{}]", "BLAKE3(0x10 | accept | A(a) | S(p) | ..)"),
    Code.STATE_ORDER: ("state_digest[{}]", "(rank, digest) greater than the state's before"),
    Code.DEAD_STATE: ("state {}", "acceptance or an edge"),
    # C6: rules about all states together
    Code.UNREACHABLE: ("state {}", "an edge into it"),
    Code.UNUSED_CALL: ("call {}", "an edge with it"),
}
_HEADS = (b"\x10\x00", b"\x10\x01")
_FAR = 1 << 65  # greater than any bound plus the cost or residual of a call


def check_states(
    file: ArtifactFile,
    automaton: Automaton,
    table: CallTable,
    plans: Sequence[int],
    race: Sequence[int],
) -> None:
    """Check C1 to C6, except for the widths of columns.

    Args:
        automaton: the states and edges of the columns, not checked yet.
        table: the checked calls.
        plans: [n], N(q).
        race: [n], m(q).  It is `plans` if the file has no column of race counts, and empty for a
            gate.

    Raises:
        Rejected: the first rule of the table that fails.  C504 in place of C501 or C502 if the
            expected value exceeds 64 bits.  M102 the root in the manifest.
    """
    manifest, columns = file.manifest, file.columns
    known, ambiguous = manifest.calls, manifest.nondeterministic
    factor, bits, gate = manifest.fraction_bits, manifest.round_counts, manifest.gate
    room, weights, rule = 0, table.weight, Code.RACE_COUNT
    if gate:  # rounded plans are rounded race counts with all weights 1 and F = 0
        factor, bits, race, plans = 0, MAX_ROUND_BITS, plans, range(manifest.states)
        weights, rule = [1] * known, Code.PLAN_COUNT
    else:
        room = 64 * columns.get("race_count", columns["plans"]).shape[1]
    counted: Iterable[tuple[int, int]] = zip(race, repeat(0), strict=False)
    if bits is not None:
        # imported here because exact counts do not need it
        from tcc_certs.rounded import count_pairs, round_up

        counted = count_pairs(race)
    states = zip(
        automaton.edge_start[1:], automaton.accept, automaton.rank, plans, counted,
        columns["cost_to_go"].items(), columns["residual_to_go"].items(),
        iter_unpack("32s", columns["state_digest"].data), strict=True,
    )  # fmt: skip
    edges = zip(automaton.edge_call, automaton.edge_target, strict=True)
    calls = list(zip(weights, table.cost_low, table.residual, table.digest, strict=True))
    held: list[tuple[int, int, int, int, int, int, bytes]] = []  # the values of the earlier states
    entered, used = bytearray(manifest.states), bytearray(known)
    hasher = blake3()  # reusing a hasher takes two thirds of the time of a new one for each state
    first, before = automaton.edge_start[0], (-1, b"")
    if first != 0:
        raise _refused(Code.EDGE_START, 0, first)
    for q, (last, accept, rank, plan, count, cost, score, (digest,)) in enumerate(states):
        if not first <= last <= manifest.edges:
            raise _refused(Code.EDGE_START, q + 1, last)
        if accept > 1:
            raise _refused(Code.ACCEPT_VALUE, q, accept)
        call, target, deepest, total = -1, -1, -1, accept
        least, most = (0, 0) if accept or first == last else (_FAR, -_FAR)
        stop = factor * rank
        fits = stop < room or not accept
        mass = accept << stop if fits else 0
        terms = [(accept, stop)]  # for a rounded race count: pairs of a number and a power of two
        parts: list[bytes] = []  # the input of the digest
        for a, p in islice(edges, last - first):
            if a >= known:
                raise _refused(Code.EDGE_RANGE, first + len(parts), a)
            if a <= call and not (ambiguous and (a, p) > (call, target)):
                raise _refused(Code.EDGE_ORDER, first + len(parts), f"{a, p} after {call, target}")
            if p >= q:
                raise _refused(Code.TARGET_ORDER, first + len(parts), p)
            call, target = a, p
            entered[p] = used[a] = 1
            weight, a_cost, a_score, a_digest = calls[a]
            p_rank, p_plan, p_count, p_lift, p_cost, p_score, p_digest = held[p]
            if p_rank > deepest:
                deepest = p_rank
            total += p_plan
            power = stop + p_lift  # F (d(q) - 1 - d(p)), plus the exponent of a rounded count
            if bits is not None:
                terms.append((weight * p_count, power))
            elif 0 <= power < room:
                mass += weight * p_count << power
            else:  # a wrong rank, or a sum that exceeds the column: avoid the large number
                fits = False
            a_cost += p_cost
            if a_cost < least:
                least = a_cost
            a_score += p_score
            if a_score > most:
                most = a_score
            parts.append(a_digest + p_digest)
        if rank != deepest + 1:
            raise _refused(Code.RANK, q, rank, deepest + 1)
        if plan != total and not gate:
            raise _refused(Code.PLAN_COUNT, q, plan, total)
        expected = (mass if fits else 1 << room, 0) if bits is None else round_up(terms, bits)
        if count != expected:
            raise _refused(rule, q, count if bits else count[0], expected if bits else expected[0])
        if cost != least:
            raise _bound_refused(Code.COST_TO_GO, q, cost, least)
        if score != most:
            raise _bound_refused(Code.RESIDUAL_TO_GO, q, score, most)
        if ambiguous:  # edges of the same call are sorted by the digests of their targets
            calls_here = automaton.edge_call[first:last]
            parts = [part for _, part in sorted(zip(calls_here, parts, strict=True))]
        hasher.reset()
        hasher.update(_HEADS[accept] + b"".join(parts))
        if digest != hasher.digest():
            raise _refused(Code.STATE_DIGEST, q, digest.hex())
        if not (rank, digest) > before:
            raise _refused(Code.STATE_ORDER, q, digest.hex())
        if not (accept or parts):
            raise _refused(Code.DEAD_STATE, q, "neither")
        held.append((rank, plan, count[0], count[1] - factor - stop, cost, score, digest))
        first, before = last, (rank, digest)
    require(manifest.edges, first, Code.EDGE_START, f"edge_start[{manifest.states}]")
    require(before[1].hex(), manifest.root.hex(), Code.MANIFEST_VALUE, "manifest.root")
    _check_marked(Code.UNREACHABLE, entered[:-1])
    _check_marked(Code.UNUSED_CALL, used)


def _check_marked(code: Code, marks: bytearray) -> None:
    if 0 in marks:
        raise _refused(code, marks.index(0), "none")


def _refused(code: Code, at: int, found: object, expected: object = None) -> Rejected:
    """The error of a rule at a state, edge or call; without `expected` it has the rule's text."""
    place, rule = _RULES[code]
    return Rejected(code, place.format(at), rule if expected is None else expected, found)


def _bound_refused(code: Code, q: int, found: int, expected: int) -> Rejected:
    refusal = _refused(code, q, found, expected)
    if -(1 << 63) <= expected < 1 << 63:
        return refusal
    return Rejected(Code.BOUND_RANGE, refusal.path, expected, found)


def check_widths(file: ArtifactFile, plans: Sequence[int], race: Sequence[int]) -> None:
    """Check that columns of counts have the least width that is enough.

    A column of race counts must differ from the plans.  Columns for a gate have a fixed width.

    Raises:
        Rejected: C302, C402.
    """
    if file.manifest.gate:
        return
    _check_width(file, "plans", plans, Code.PLAN_WIDTH)
    if "race_count" in file.columns:
        _check_width(file, "race_count", race, Code.RACE_WIDTH)
        repeats = list(race) == list(plans)
        ensure(not repeats, Code.RACE_WIDTH, "race_count", "a count that is not plans'", "none")


def _check_width(file: ArtifactFile, name: str, counts: Sequence[int], code: Code) -> None:
    least = max(1, -(-max(counts).bit_length() // 64))
    width = file.columns[name].shape[1]
    ensure(width == least, code, name, f"{least} limbs", width)
