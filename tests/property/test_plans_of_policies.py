"""The plans of an artifact are the sessions of done calls that the definition allows.

They are exactly these if the automaton holds every statement, and more if the place of one is
`both`.  The policies are random, with `no`, `not`, `every`, `since`, counts and limits by key.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tcc_certs.formats.codec import encode
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy import nodes, plans as model
from tcc_certs.policy.core import Core
from tcc_certs.policy.course import Course
from tcc_certs.policy.history import DONE
from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.meaning import Policy
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.reader import core_json
from tcc_certs.policy.tables import Letter
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tests.certs.policy.examples import letters_of
from tests.certs.policy.test_tables import TOOLS, Draw, calls

DEPTH = 3
OPENED = (0, 3)  # values of the open argument of `c`
_ANY = model.Repeat(model.OneCall(0), 0, None)


def core_of(seed: int) -> Core:
    """A core with a few calls, one to three random statements and a limit on depth."""
    rng = random.Random(seed)
    some = rng.sample(calls(), 5)
    found = []
    for call in some:
        tool = TOOLS[call.tool]
        pairs = zip(tool.listed, call.values, strict=True)
        texts = [
            (one, ("", *one.values)[at] if one.optional else one.values[at]) for one, at in pairs
        ]
        inside = ",".join([f"{one.name}={text}" for one, text in texts if text])
        found.append(replace(call, text=f"{tool.name}({inside})" if inside else tool.name))
    draw = Draw(seed, opened=rng.random() < 0.7)
    total = nodes.Total(what="depth", most=str(DEPTH))
    statements = [*(draw.statement() for _ in range(rng.randint(1, 3))), total]
    rng.shuffle(statements)
    return Core(
        name="g", version="1", tools=TOOLS, calls=tuple(sorted(found, key=lambda one: one.text)),
        patterns=(((0, 5),),), rules={}, plan=_ANY, statements=tuple(statements),
    )  # fmt: skip


def allowed(policy: Policy, letters: Sequence[Letter]) -> set[tuple[int, ...]]:
    """The words that the definition allows for some values of the open argument."""
    found: set[tuple[int, ...]] = set()
    steps = [
        (at, opened)
        for at, letter in enumerate(letters)
        for opened in (OPENED if letter.tool == "c" else (0,))
    ]
    words: list[tuple[tuple[int, int], ...]] = [()]
    while words:
        word = words.pop()
        course = Course(policy)
        if not all(takes(course, letters[at], opened) for at, opened in word):
            continue
        if not course.unmet():
            found.add(tuple([at for at, _ in word]))
        if len(word) <= DEPTH:  # one call more, which the limit on depth refuses
            words += [(*word, step) for step in steps]
    return found


def takes(course: Course, letter: Letter, opened: int) -> bool:
    """Whether the definition allows a call, which is then done."""
    tool = course.policy.core.tool_of[letter.tool]
    values = {name: state[1] for name, state in letter.states.items() if state[0] != "none"}
    answers = {one.name for one in tool.answers}
    arguments = {name: value for name, value in values.items() if name not in answers}
    if tool.name == "c":
        arguments["open"] = opened
    if course.check(tool.name, arguments):
        return False
    call = course.call(tool.name, arguments)
    course.record(call, DONE, {name: values[name] for name in answers})
    return True


def plans_in(artifact: CheckedArtifact) -> Iterator[tuple[int, ...]]:
    """The plans of an artifact, as calls of its core."""
    todo: list[tuple[int, tuple[int, ...]]] = [(artifact.automaton.root, ())]
    while todo:
        q, word = todo.pop()
        if artifact.automaton.accept[q]:
            yield word
        for call, target in artifact.automaton.edges(q):
            todo.append((target, (*word, artifact.core_calls[call])))


def compare(seeds: range) -> None:
    places = {"automaton": 0, "both": 0, "gate": 0}
    for seed in seeds:
        core = core_of(seed)
        try:
            policy = Policy(core)
        except Fault:
            continue
        wanted = allowed(policy, letters_of(core))
        compiled = compile_core(encode(core_json(core)), Options())
        if compiled.artifact is None:
            assert [one.code for one in compiled.diagnostics] == ["TCC402"], seed
            found: set[tuple[int, ...]] = set()
        else:
            found = set(plans_in(check(compiled.artifact)))
        texts = [part.text for part in parts_of(core)]
        assert wanted <= found, (seed, texts, sorted(wanted - found)[:3])
        kinds = {part.place for part in parts_of(core)}
        for kind in kinds:
            places[kind] += 1
        if kinds == {"automaton"}:
            assert wanted == found, (seed, texts, sorted(found - wanted)[:3])
    assert min(places.values()) >= len(seeds) // 50, places


@pytest.mark.parametrize("block", range(4))
@pytest.mark.sampled(1)
def test_plans_are_what_the_definition_allows(block: int) -> None:
    compare(range(100 * block, 100 * block + 100))


@pytest.mark.campaign
@pytest.mark.parametrize("block", range(10))
def test_plans_of_many_policies(block: int) -> None:
    compare(range(1000 + 1000 * block, 2000 + 1000 * block))
