"""The rules of an automaton with cycles: its edges, its ends, and that it is the smallest.

Normative text: docs/spec/artifact.md, section 10.  Only artifacts with the feature `cyclic` load
this module.  Plans of such an automaton have no bound, so it has no counts, ranks or bounds.

The artifact has three certificates:

- The states are numbered by breadth-first search, so the root reaches every state.
- `calls_to_go` is the distance of a state to an end, so every state can finish.
- The splits separate any two states, so no two states have the same plans.

Cost: one BLAKE3 pass over the edges.  The splits take at most the edges times the logarithm of the
states, because the smaller part of each block is added to the greater one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blake3 import blake3

from tcc_certs.call_rules import CallTable
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.artifact import ArtifactFile, Automaton

_HEADS = (b"\x12\x00", b"\x12\x01")
BY_END = 0  # in `split_by`: a plan may stop in all states of one part, and in no state of the other
BY_EDGE = 1  # in `split_by`: all states of one part have edges of the call; none of the other has
BY_SPLIT = 2  # in `split_by`: the first split; see Splits


def check_cyclic(file: ArtifactFile, automaton: Automaton, table: CallTable) -> None:
    """Check C1, C2 and C6 of an automaton with cycles.

    Args:
        automaton: the states and edges of the columns, not checked yet.
        table: the checked calls.

    Raises:
        Rejected: C101..C104 the edges.  C203 the states are not numbered breadth first.  C204 a
            distance to an end.  C603 no edge leads to a state.  C605 a call has no edge.  C606,
            C607 the splits.  M102 the root in the manifest.
    """
    root = _check_edges(file, automaton, table)
    require(root.hex(), file.manifest.root.hex(), Code.MANIFEST_VALUE, "manifest.root")
    _check_ends(automaton)
    Splits(file, automaton).check()


def _check_edges(file: ArtifactFile, automaton: Automaton, table: CallTable) -> bytes:
    """Check the edges and the numbers of the states; return the digest of the graph."""
    states, edges, calls = file.manifest.states, file.manifest.edges, file.manifest.calls
    edge_call, edge_target = automaton.edge_call, automaton.edge_target
    used = bytearray(calls)
    hasher = blake3()
    met, first = 1, automaton.edge_start[0]
    if first != 0:
        raise Rejected(Code.EDGE_START, "edge_start[0]", 0, first)
    for q, accept in enumerate(automaton.accept):
        last = automaton.edge_start[q + 1]
        if not first <= last <= edges:
            raise Rejected(Code.EDGE_START, f"edge_start[{q + 1}]", "increasing", last)
        if accept > 1:
            raise Rejected(Code.ACCEPT_VALUE, f"accept[{q}]", "0 or 1", accept)
        if q >= met:
            expected = "an edge into it from a lower state"
            raise Rejected(Code.UNREACHABLE, f"state {q}", expected, "none")
        before, parts = -1, [_HEADS[accept], (last - first).to_bytes(4, "little")]
        for at in range(first, last):
            call, target = edge_call[at], edge_target[at]
            if call >= calls:
                expected = "a call of the artifact"
                raise Rejected(Code.EDGE_RANGE, f"edge_call[{at}]", expected, call)
            if call <= before:
                raise Rejected(Code.EDGE_ORDER, f"edge_call[{at}]", "calls that increase", call)
            if target >= met:
                if target > met or target >= states:
                    expected = f"{min(met, states - 1)} at most"
                    raise Rejected(Code.TARGET_NUMBER, f"edge_target[{at}]", expected, target)
                met += 1
            before = call
            used[call] = 1
            parts.append(table.digest[call])
            parts.append(target.to_bytes(4, "little"))
        hasher.update(b"".join(parts))
        first = last
    require(edges, first, Code.EDGE_START, f"edge_start[{states}]")
    if 0 in used:
        raise Rejected(Code.UNUSED_CALL, f"call {used.index(0)}", "an edge with it", "none")
    return hasher.digest()


def _check_ends(automaton: Automaton) -> None:
    """Check the distance of each state to an end.

    The equations have one solution.  A state that cannot reach an end has no finite distance.
    """
    to_go, targets = automaton.calls_to_go, automaton.edge_target
    first = 0
    for q, accept in enumerate(automaton.accept):
        last = automaton.edge_start[q + 1]
        if accept:
            expected = 0
        elif first == last:
            raise Rejected(Code.CALLS_TO_GO, f"calls_to_go[{q}]", "a way to an end", "no edge")
        else:
            expected = 1 + min([to_go[target] for target in targets[first:last]])
        if to_go[q] != expected:
            raise Rejected(Code.CALLS_TO_GO, f"calls_to_go[{q}]", expected, to_go[q])
        first = last


# For a call and a block: how many states have an edge of the call, and the lowest and highest place
# of its targets.
_Reach = tuple[int, int, int]


class Splits:
    """The certificate that no two states have the same plans.

    `place` orders the states.  Split i cuts one block of this order at the place `split_at[i]`.
    The first block is the whole order, and after all splits every block is one state.  The two
    parts of a block are separated by an end, by an edge, or by an earlier split between their
    targets.

    So the first split between two states shows that they have different plans, by induction over
    the splits.
    """

    def __init__(self, file: ArtifactFile, automaton: Automaton) -> None:
        columns, self._automaton = file.columns, automaton
        self._calls = file.manifest.calls
        self._place: Sequence[int] = columns["place"].items()
        self._at: Sequence[int] = columns["split_at"].items()
        self._call: Sequence[int] = columns["split_call"].items()
        self._by: Sequence[int] = columns["split_by"].items()

    def check(self) -> None:
        """Check every split from the last to the first, and join its two parts each time.

        Raises:
            Rejected: C606 an order or a split has the wrong form; C607 a split does not separate
                its parts.
        """
        states = self._automaton.states
        self._check_form()
        # begin[i] is of the block that ends at i, and end[i] of the block that begins at i
        begin, end = list(range(states + 1)), list(range(states + 1))
        for place in range(states):
            end[place], begin[place + 1] = place + 1, place
        reach, accepting = self._reach_of_states(), self._accepting()
        for number in range(len(self._at) - 1, -1, -1):
            middle = self._at[number]
            low, high = begin[middle], end[middle]
            one, other = reach[low], reach[middle]
            if not self._separates(number, (low, middle, high), (one, other), accepting):
                expected = "a call, or an end, that separates both parts of the block"
                found = f"places {low}..{middle - 1} and {middle}..{high - 1}"
                raise Rejected(Code.SPLIT, f"split_at[{number}]", expected, found)
            reach[low] = _joined(one, other)
            reach[middle] = {}
            begin[high], end[low] = low, high

    def _check_form(self) -> None:
        states, form = self._automaton.states, Code.SPLIT_FORM
        seen = bytearray(states)
        for q, place in enumerate(self._place):
            fresh = place < states and not seen[place]
            ensure(fresh, form, f"place[{q}]", f"each of 0..{states - 1} once", place)
            seen[place] = 1
        cut = bytearray(states)
        for number, at in enumerate(self._at):
            fresh = 0 < at < states and not cut[at]
            ensure(fresh, form, f"split_at[{number}]", f"each of 1..{states - 1} once", at)
            cut[at] = 1
            call, by = self._call[number], self._by[number]
            ensure(by < BY_SPLIT + number, form, f"split_by[{number}]", "an earlier split", by)
            known = call < self._calls or (by == BY_END and call == 0)
            ensure(known, form, f"split_call[{number}]", "a call of the artifact", call)

    def _reach_of_states(self) -> list[dict[int, _Reach]]:
        """For each place the reach of its state, for the calls that some split uses."""
        wanted = {call for call, by in zip(self._call, self._by, strict=True) if by != BY_END}
        found: list[dict[int, _Reach]] = [{} for _ in self._place]
        for q, at in enumerate(self._place):
            row = found[at]
            for call, target in self._automaton.edges(q):
                if call in wanted:
                    place = self._place[target]
                    row[call] = 1, place, place
        return found

    def _accepting(self) -> list[int]:
        """For each n, how many of the first n places have a state in which a plan may stop."""
        marks = [0] * len(self._place)
        for at, accept in zip(self._place, self._automaton.accept, strict=True):
            marks[at] = accept
        counted = [0]
        for mark in marks:
            counted.append(counted[-1] + mark)
        return counted

    def _separates(
        self,
        number: int,
        places: tuple[int, int, int],
        parts: tuple[Mapping[int, _Reach], Mapping[int, _Reach]],
        accepting: Sequence[int],
    ) -> bool:
        low, middle, high = places
        by, call = self._by[number], self._call[number]
        sizes = middle - low, high - middle
        if by == BY_END:
            ends = accepting[middle] - accepting[low], accepting[high] - accepting[middle]
            return ends in ((0, sizes[1]), (sizes[0], 0))
        none = (0, 0, 0)
        one, other = parts[0].get(call, none), parts[1].get(call, none)
        if by == BY_EDGE:
            return (one[0], other[0]) in ((0, sizes[1]), (sizes[0], 0))
        if (one[0], other[0]) != sizes:
            return False
        cut = self._at[by - BY_SPLIT]
        return one[2] < cut <= other[1] or other[2] < cut <= one[1]


def _joined(one: dict[int, _Reach], other: dict[int, _Reach]) -> dict[int, _Reach]:
    """The reach of a block from the reach of its parts; the greater dictionary is changed."""
    if len(one) < len(other):
        one, other = other, one
    for call, (count, least, most) in other.items():
        held = one.get(call)
        if held is not None:
            count, least, most = count + held[0], min(least, held[1]), max(most, held[2])
        one[call] = count, least, most
    return one
