"""Automata with cycles, for gates: the words, the least number of states, and the certificate."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Automaton, read_artifact, view
from tcc_certs.formats.codec import encode
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.core import Core
from tcc_certs.policy.expressions import walk
from tcc_certs.policy.plans import Expr, Repeat
from tcc_certs.policy.reader import core_json, read_core
from tcc_certs.replay.language import read_language
from tcc_certs.report import check_artifact
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_text
from tests.campaigns.blocks import blocks
from tests.oracle.cores import depth, random_core, random_later_core
from tests.oracle.plans import answers, plans
from tests.oracle.strict import without_strict

GATE = Options(purpose="gate")
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


@pytest.mark.parametrize("seed", blocks(6, 15))
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


def test_the_shortest_plan_has_as_many_calls_as_the_depth_allows() -> None:
    text = 'grammar g version "1"\ntool a\ntool b\nplan = a* b b\nlimit depth <= 2\n'
    assert check(compiled(text)).automaton.cyclic


def test_plans_without_a_bound_have_no_race_counts() -> None:
    with pytest.raises(Rejected) as refused:
        read_language(check(compiled(DESK)))
    assert refused.value.code is Code.ENDLESS
