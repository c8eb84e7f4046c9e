"""Forged automata with cycles are refused, each with its code and place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, permutations, product
from typing import Any, TypeAlias

import pytest

from tcc_certs.cyclic_rules import BY_EDGE, BY_END, BY_SPLIT
from tcc_certs.errors import Code, Rejected
from tcc_certs.kernel import check
from tcc_certs.policy.reader import core_json, read_core
from tcc_certs.report import check_artifact
from tcc_compiler.automata.letters import join_calls, partition
from tcc_compiler.automata.minimise import Refinement, Split
from tcc_compiler.automata.table import Machine, trim
from tcc_compiler.counting import weigh
from tcc_compiler.cyclic import CyclicContents, calls_to_go, emit_cyclic
from tcc_compiler.options import Options
from tcc_compiler.resources import Guard
from tests.certs.rules.refusals import refusal
from tests.certs.test_cyclic import DESK, classes, compiled
from tests.forgery.artifacts import Forge, column_mutants, manifest_mutants
from tests.oracle.cores import letters, make_core

Rows: TypeAlias = "Sequence[tuple[bool, Sequence[tuple[int, int]]]]"  # ends, and edges

# What a changed item of a column or a member of the manifest may break.
CERTIFICATE = {"place", "split_at", "split_by", "split_call"}
FREE = CERTIFICATE | {"options.beta"}  # no call has a cost


def test_a_changed_item_is_refused_unless_the_certificate_still_holds() -> None:
    data = compiled(DESK)
    graph = {name: Forge(data).columns[name] for name in ("accept", "edge_call", "edge_target")}
    kept = Counter[str]()
    for mutant in (*column_mutants(data), *manifest_mutants(data)):
        try:
            checked = check(mutant.data)
        except Rejected:
            continue
        assert mutant.field in FREE, (mutant.field, mutant.how)
        assert {name: Forge(mutant.data).columns[name] for name in graph} == graph
        assert classes(checked.automaton) == checked.automaton.states
        kept[mutant.field] += 1
    assert sum(kept.values()) < 40


def test_features_that_do_not_go_together_are_refused() -> None:
    for others in ([], ["gate", "nondeterministic"], ["gate", "rounded"]):
        critical = ["cyclic", *others]
        forge = Forge(compiled(DESK)).member("critical", value=critical)
        assert refusal(forge) == ("M102", "manifest.critical")


def test_columns_of_the_other_kind_are_refused() -> None:
    bounded = Forge(compiled(DESK.replace(")*", "){0,2}")))
    for name in ("rank", "plans_mantissa", "state_digest"):
        forge = Forge(compiled(DESK))
        forge.columns[name] = bounded.columns[name]
        assert refusal(forge) == ("M201", "header")
    for name in ("calls_to_go", *sorted(CERTIFICATE)):
        forge = Forge(compiled(DESK))
        del forge.columns[name]
        assert refusal(forge) == ("M201", "header")


def built(rows: Rows, plan: Any) -> bytes:
    """A sealed file of these states over calls a, b, c, whatever they are.

    If two states have the same plans, the certificate is that of another automaton.
    """
    core = read_core(make_core(**letters(3), plan=plan))
    guard, size = Guard(Options()), len(rows)
    chain = [(False, [(A, at + 1)]) for at in range(size - 1)] + [(True, [(B, size - 1), (C, 0)])]
    shape, machine = machine_of(chain), machine_of(rows)
    contents = CyclicContents(
        core=core,
        document=core_json(core),
        machine=shape,
        letters=partition(join_calls(core), ()),
        weights=weigh(core, [A, B, C], (1, 0), 0, guard),
        beta=(1, 0),
        tilt=0,
        relaxed=(),
    )
    forge = Forge(emit_cyclic(contents, guard))
    edges = [edge for _, row in rows for edge in row]
    forge.put("accept", [int(end) for end, _ in rows])
    forge.put("edge_start", [0, *accumulate(len(row) for _, row in rows)])
    forge.put("edge_call", [call for call, _ in edges])
    forge.put("edge_target", [target for _, target in edges])
    forge.member("edges", value=len(edges))
    if trim(machine) == machine:
        forge.put("calls_to_go", calls_to_go(machine))
    refined = Refinement(machine, guard)
    if len(refined.splits) == size - 1:
        forge.put("place", refined.place)
        forge.put("split_at", [split.at for split in refined.splits])
        forge.put("split_call", [split.letter or 0 for split in refined.splits])
        forge.put("split_by", [number_of(split) for split in refined.splits])
    return resealed(forge)


def machine_of(rows: Rows) -> Machine:
    ends, edges = [end for end, _ in rows], [tuple(row) for _, row in rows]
    return Machine(start=0, accept=ends, edges=edges)


def number_of(split: Split) -> int:
    """The item of `split_by`."""
    if split.by is not None:
        return BY_SPLIT + split.by
    return BY_END if split.letter is None else BY_EDGE


def resealed(forge: Forge) -> bytes:
    """The file with the digest of its graph."""
    try:
        check(forge.seal())
    except Rejected as wrong:
        if wrong.path == "manifest.root":
            forge.member("root", value=wrong.expected)
    return forge.seal()


A, B, C = 0, 1, 2
# (a b* c)*: after a comes any number of b, then c.
PLAN = ["repeat", ["seq", [["call", {A}], ["repeat", ["call", {B}], 0], ["call", {C}]]], 0]
TRUE = [(True, [(A, 1)]), (False, [(B, 1), (C, 0)])]


def test_the_true_automaton_is_valid() -> None:
    assert check_artifact(built(TRUE, PLAN), core=True).verdict == 0


@pytest.mark.parametrize(
    ("rows", "code", "path"),
    [
        ([(True, [(A, 1)]), (False, [(C, 0)])], "C605", "call 1"),
        ([(True, [(A, 1)]), (True, [(B, 1), (C, 0)])], "G101", "state 1 after [a]"),
        ([(True, [(A, 1), (B, 1), (C, 1)]), (True, [(A, 0)])], "G102", "state 0 after []"),
        ([(True, [(A, 1)]), (False, [(B, 2), (C, 0)]), (False, [(C, 0)])], "G102",
         "state 2 after [a b]"),
        # A word of both, but one that does not come back to the same state.
        ([(True, [(A, 1)]), (False, [(B, 1), (C, 2)]), (True, [])], "G102", "state 2 after [a c]"),
    ],
)  # fmt: skip
def test_another_automaton_is_not_that_of_the_core(rows: Rows, code: str, path: str) -> None:
    data = built(rows, PLAN)
    report = check_artifact(data, core=True)
    assert [(one.code, one.path) for one in report.findings][:1] == [(code, path)]


@pytest.mark.parametrize(
    ("rows", "refused"),
    [
        # State 1 twice: no certificate separates the copies.
        ([(True, [(A, 1)]), (False, [(B, 2), (C, 0)]), (False, [(B, 1), (C, 0)])], "C607"),
        # A state that nothing reaches.
        ([(True, [(A, 1)]), (False, [(B, 1), (C, 0)]), (False, [(C, 0)])], "C603"),
        # A state from which no end is reached.
        ([(True, [(A, 1)]), (False, [(B, 2), (C, 0)]), (False, [(B, 2)])], "C204"),
        # Numbers in another order than breadth first.
        ([(True, [(A, 2)]), (False, [(C, 0)]), (False, [(B, 1), (C, 0)])], "C203"),
    ],
)
def test_a_file_of_a_wrong_graph_is_refused(rows: Rows, refused: str) -> None:
    assert refusal(built(rows, PLAN))[0] == refused


def certificates(states: int, calls: int) -> Iterator[tuple[Any, ...]]:
    """Every order of the states with every list of splits."""
    whole = range(1, states)
    for place in permutations(range(states)):
        for at in permutations(whole):
            for by in product(*(range(BY_SPLIT + number) for number in range(states - 1))):
                for call in product(range(calls), repeat=states - 1):
                    yield place, at, by, call


def test_no_certificate_separates_two_states_with_the_same_words() -> None:
    rows = [(True, [(A, 1)]), (False, [(B, 2), (C, 0)]), (False, [(B, 1), (C, 0)])]
    forge, codes = Forge(built(rows, PLAN)), Counter[str]()
    for place, at, by, call in certificates(3, 3):
        forge.put("place", list(place)).put("split_at", list(at))
        forge.put("split_by", list(by)).put("split_call", list(call))
        codes[refusal(forge)[0]] += 1
    assert set(codes) <= {"C606", "C607"} and codes["C607"] > 100


def test_some_certificate_is_accepted_for_states_with_other_words() -> None:
    rows = [(True, [(A, 1)]), (False, [(B, 2), (C, 0)]), (False, [(C, 0)])]
    forge, valid = Forge(built(rows, PLAN)), 0
    for place, at, by, call in certificates(3, 3):
        forge.put("place", list(place)).put("split_at", list(at))
        forge.put("split_by", list(by)).put("split_call", list(call))
        try:
            check(forge.seal())
        except Rejected as refused:
            assert refused.code in (Code.SPLIT, Code.SPLIT_FORM)
        else:
            valid += 1
    assert valid > 0


@pytest.mark.parametrize(
    ("name", "at", "value", "refused"),
    [
        ("place", 0, 99, ("C606", "place[0]")),
        ("split_at", 0, 0, ("C606", "split_at[0]")),
        ("split_by", 0, BY_SPLIT, ("C606", "split_by[0]")),
        ("split_call", 0, 3, ("C606", "split_call[0]")),
        ("calls_to_go", 1, 2, ("C204", "calls_to_go[1]")),
        ("edge_target", 0, 2, ("C203", "edge_target[0]")),
        ("edge_target", 1, 2, ("C203", "edge_target[1]")),
        ("edge_start", 0, 1, ("C104", "edge_start[0]")),
        ("edge_start", 1, 4, ("C104", "edge_start[1]")),
        ("edge_start", 2, 0, ("C104", "edge_start[2]")),
        ("edge_start", 2, 2, ("C104", "edge_start[2]")),
        ("accept", 0, 2, ("C103", "accept[0]")),
        ("edge_call", 0, 3, ("C101", "edge_call[0]")),
        ("edge_call", 2, 1, ("C102", "edge_call[2]")),
        ("edge_call", 2, 0, ("C102", "edge_call[2]")),
    ],
)
def test_a_wrong_certificate_is_refused(name: str, at: int, value: int, refused: Any) -> None:
    forge = Forge(built(TRUE, PLAN))
    assert forge.values("split_by") == [BY_END]
    assert refusal(forge.set(name, at, value)) == refused


def test_an_edge_that_one_part_has_separates_and_one_that_both_lack_does_not() -> None:
    forge = Forge(built(TRUE, PLAN)).set("split_by", 0, BY_EDGE)
    for call in (A, B, C):
        assert check(forge.set("split_call", 0, call).seal())
    forge = Forge(built([(True, [(A, 1), (C, 1)]), (False, [(B, 1), (C, 0)])], PLAN))
    assert refusal(forge.set("split_by", 0, BY_EDGE).set("split_call", 0, C))[0] == "C607"


@pytest.mark.parametrize(("edges", "distance"), [([], 9), ([(B, 2)], 5)])
def test_a_state_without_a_way_to_an_end_has_no_distance(edges: Any, distance: int) -> None:
    forge = Forge(built([(True, [(A, 1)]), (False, [(B, 2), (C, 0)]), (False, edges)], PLAN))
    forge.put("calls_to_go", [0, 1, distance])
    assert refusal(forge) == ("C204", "calls_to_go[2]")


def test_targets_separate_parts_only_if_every_state_has_the_edge() -> None:
    """States 2 and 4 have the same plans, and no edge of c; the targets of c differ elsewhere."""
    rows = [(False, [(A, 1), (B, 2), (C, 3)]), (False, [(A, 4), (C, 5)]), (False, [(A, 5)]),
            (False, [(C, 2)]), (False, [(A, 5)]), (True, [])]  # fmt: skip
    forge = Forge(built(rows, PLAN)).put("calls_to_go", [2, 1, 1, 2, 1, 0])
    forge.put("place", [4, 0, 1, 2, 3, 5]).put("split_at", [5, 2, 1, 3, 4])
    forge.put("split_by", [BY_END, BY_SPLIT, BY_EDGE, BY_EDGE, BY_EDGE])
    assert refusal(forge.put("split_call", [0, C, C, A, B])) == ("C607", "split_at[1]")


def test_a_relaxed_total_of_depth_is_refused() -> None:
    forge = Forge(compiled(f"{DESK}limit depth <= 9\n"))
    forge.member("critical", value=["cyclic", "gate", "relaxed"]).member("relaxed", value=[3])
    assert refusal(forge)[0] == "C803"


def test_a_plan_that_is_too_long_for_the_total_is_refused() -> None:
    forge = Forge(compiled(f"{DESK}limit depth <= 9\n"))
    core = forge.text("core")
    [total] = [one for one in core["statements"] if one["kind"] == "total"]
    total["most"] = 3
    forge.put_text("core", core)
    limits = [text.replace("9", "3") for text in forge.manifest["leaf_policy"]["root"]["limits"]]
    forge.member("leaf_policy", "root", "limits", value=limits)
    assert refusal(forge) == ("C204", "calls_to_go[0]")
