"""Automata with cycles, for gates: the words, the least number of states, and the certificate."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, permutations, product
from typing import Any, TypeAlias

import pytest

from tcc_certs.cyclic_rules import BY_EDGE, BY_END, BY_SPLIT
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Automaton, read_artifact, view
from tcc_certs.formats.codec import encode
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.core import Core
from tcc_certs.policy.expressions import walk
from tcc_certs.policy.plans import Expr, Repeat
from tcc_certs.policy.reader import core_json, read_core
from tcc_certs.report import check_artifact
from tcc_compiler.automata.letters import join_calls, partition
from tcc_compiler.automata.minimise import Refinement, Split
from tcc_compiler.automata.table import Machine, trim
from tcc_compiler.counting import weigh
from tcc_compiler.cyclic import CyclicContents, calls_to_go, emit_cyclic
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_text
from tcc_compiler.resources import Guard
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge, column_mutants, manifest_mutants
from tests.oracle.cores import depth, letters, make_core, random_core, random_later_core
from tests.oracle.plans import answers, plans
from tests.oracle.strict import without_strict

GATE = Options(purpose="gate")
Rows: TypeAlias = "Sequence[tuple[bool, Sequence[tuple[int, int]]]]"  # ends, and edges
DESK = """grammar desk version "1"
tool find gives (found: yes | no)
tool approve
tool refund
tool send
plan = (find (approve refund?)? send)*
finally require count(send) >= 2
before refund require no approve since refund
before send require last(find).found = yes
"""


def compiled(text: str) -> bytes:
    found = compile_text(text, GATE)
    assert found.artifact is not None, found.diagnostics
    return found.artifact


def endless(seed: int, longest: int) -> tuple[bytes, Core]:
    """A random core without a total of depth, of 1 to 3 calls, that compiles to a cyclic file."""
    rng = random.Random(seed)
    while True:
        _, drawn = random_core(rng)
        if len(drawn.calls) > (2 if longest > 6 else 3):
            continue
        if not any(repeats(expr) for expr in (drawn.plan, *drawn.rules.values())):
            continue
        document = core_json(drawn)
        document["statements"] = [
            one for one in document["statements"] if one.get("what") != "depth"
        ]
        data = encode(document)
        artifact = compile_core(data, Options(purpose="gate", max_states=300)).artifact
        if artifact is not None and read_artifact(artifact).manifest.cyclic:
            return artifact, read_core(data)


def repeats(expr: Expr) -> bool:
    """Whether an expression has a repetition without an upper bound."""
    return any(isinstance(part, Repeat) and part.high is None for part in walk(expr))


def words(checked: CheckedArtifact, longest: int) -> set[tuple[int, ...]]:
    """The words of an automaton up to a length, over calls of the core."""
    automaton, found = checked.automaton, set[tuple[int, ...]]()
    layer: list[tuple[int, tuple[int, ...]]] = [(automaton.root, ())]
    while layer:
        found.update(word for q, word in layer if automaton.accept[q])
        layer = [
            (to, (*word, checked.core_calls[call]))
            for q, word in layer
            if len(word) < longest
            for call, to in automaton.edges(q)
        ]
    return found


@pytest.mark.parametrize(("seed", "longest"), [(n, 8 if n % 3 == 0 else 5) for n in range(15)])
@pytest.mark.sampled(6)
def test_words_are_those_of_the_definition(seed: int, longest: int) -> None:
    artifact, core = endless(seed, longest)
    found = words(check(artifact), longest)
    assert found == set(plans(core, longest))
    assert check_artifact(artifact, core=True).verdict == 0
    # A total of depth changes nothing in the automaton: sessions count their calls.
    document = core_json(core)
    document["statements"] = [*document["statements"], depth(9)]
    counted = compile_core(encode(document), GATE).artifact
    assert counted is not None and words(check(counted), longest) == found
    assert check_artifact(counted, core=True).verdict == 0


def classes(automaton: Automaton) -> int:
    """How many states a refinement of ends by rows, round after round, tells apart."""
    number: list[int] = list(automaton.accept)
    while True:
        rows = [
            (number[q], *((call, number[to]) for call, to in automaton.edges(q)))
            for q in range(automaton.states)
        ]
        names = {row: at for at, row in enumerate(dict.fromkeys(rows))}
        after = [names[row] for row in rows]
        if len(names) == len(set(number)):
            return len(names)
        number = after


@pytest.mark.parametrize("seed", range(15))
def test_no_two_states_have_the_same_words(seed: int) -> None:
    artifact, _ = endless(1000 + seed, 5)
    automaton = view(read_artifact(artifact))
    assert classes(automaton) == automaton.states


# Strict tools.


def strict_core(seed: int) -> Core:
    """A random core with a strict tool, of 2 to 4 calls, and without a total of depth."""
    rng = random.Random(seed)
    while True:
        document = core_json(random_later_core(rng, strict=1, statements=0.3)[1])
        document["statements"] = [
            one for one in document["statements"] if one.get("what") != "depth"
        ]
        core = read_core(encode(document))
        if 2 <= len(core.calls) <= 4 and any(tool.strict for tool in core.tools):
            return core


def strict_words(core: Core, states: int, longest: int) -> set[tuple[int, ...]] | None:
    """The words that strict leaves, by brute force; None: no word is left.

    Prefixes are one state if the same words follow them.  The calls without a sister, and the
    states without an end, are removed until nothing changes.

    Args:
        states: at least the states of the automaton of the words without strict.
    """
    found = set(plans(without_strict(core), 2 * states))
    begun = {word[:at] for word in found for at in range(min(states, len(word)) + 1)}
    after = {
        prefix: frozenset(
            word[len(prefix) :]
            for word in found
            if word[: len(prefix)] == prefix and len(word) < len(prefix) + states
        )
        for prefix in begun
    }
    rows: dict[frozenset[tuple[int, ...]], dict[int, frozenset[tuple[int, ...]]]] = {}
    for prefix, words_after in after.items():
        if len(prefix) < states:
            calls = [call for call in range(len(core.calls)) if (*prefix, call) in after]
            rows[words_after] = {call: after[(*prefix, call)] for call in calls}
    while True:
        left = {
            state: {
                call: target
                for call, target in row.items()
                if target in rows and all(one in row for one in answers(core, call))
            }
            for state, row in rows.items()
        }
        ends = {state for state in left if () in state}
        while more := {q for q, row in left.items() if q not in ends and ends & {*row.values()}}:
            ends |= more
        left = {state: left[state] for state in ends}
        if left == rows:
            break
        rows = left
    start = after.get((), frozenset())
    if start not in rows:
        return None
    kept, layer = set[tuple[int, ...]](), [(start, ())]
    for _ in range(longest + 1):
        kept.update(word for state, word in layer if () in state)
        layer = [(to, (*word, call)) for q, word in layer for call, to in rows[q].items()]
    return kept


def strict_cases(seeds: Iterable[int]) -> Counter[str]:
    """Compare words of strict tools with brute force; return what was compared."""
    counted = Counter[str]()
    for seed in seeds:
        core = strict_core(seed)
        loose = compile_core(encode(core_json(without_strict(core))), GATE).artifact
        if loose is None or not read_artifact(loose).manifest.cyclic:
            continue
        whole = check(loose)
        # Up to 3 states, so that the words are few.  The automaton may omit statements.
        if whole.automaton.states > 3 or whole.omitted:
            continue
        expected = strict_words(core, whole.automaton.states, 5)
        artifact = compile_core(encode(core_json(core)), GATE).artifact
        if expected is None:
            assert artifact is None, seed
            counted["none"] += 1
            continue
        assert artifact is not None, seed
        found = check(artifact)
        assert check_artifact(artifact, core=True).verdict == 0
        counted["cyclic" if found.automaton.cyclic else "acyclic"] += 1
        assert words(found, 5) == expected, seed
        counted["cut"] += len(expected) < len(words(whole, 5))
    return counted


# Of the first 900 seeds, those in which strict leaves no word or fewer words.
STRICT = 65, 82, 83, 117, 291, 386, 433, 514, 530, 701, 819, 823, 887


def test_strict_words_are_those_that_brute_force_leaves() -> None:
    counted = strict_cases(STRICT)
    assert counted == {"cyclic": 8, "acyclic": 3, "none": 2, "cut": 11}


@pytest.mark.campaign
def test_more_strict_words_are_those_that_brute_force_leaves() -> None:
    assert strict_cases(range(1000, 10_000))["cut"] > 100


def test_a_total_of_depth_is_not_unrolled() -> None:
    sizes = [len(compiled(f"{DESK}limit depth <= {most}\n")) for most in (8, 80, 8000)]
    assert max(sizes) - min(sizes) <= 128
    found = compile_text(f"{DESK}limit depth <= 3\n", GATE)
    assert [one.code for one in found.diagnostics] == ["TCC402"]
    assert "`limit depth <= 3`" in found.diagnostics[0].message


def test_the_bytes_do_not_depend_on_hash_seeds() -> None:
    program = (
        "import sys; from tests.certs.test_cyclic import DESK, compiled;"
        "sys.stdout.buffer.write(compiled(DESK))"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert made == {compiled(DESK)}


# Forgeries.

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
