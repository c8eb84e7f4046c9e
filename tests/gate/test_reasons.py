"""Reasons against their definition: statements are left out of the core, and its plans listed."""

from __future__ import annotations

import random
import threading
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.core.enforced import enforced
from tcc_certs.core.model import Core
from tcc_certs.corecheck.letters import WorkBudget
from tcc_certs.formats.artifact import Relaxed
from tcc_runtime.analysis.blame import lets_through
from tcc_runtime.analysis.statements import Part, statements_of, without
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate import reasons as giving, session as sessions
from tcc_runtime.gate.gate import Gate
from tests.gate.grammars import do, gate
from tests.gate.test_decisions import MOST, given, named, relaxed
from tests.gate.worlds import Group, drawn_grammar, split
from tests.oracle.plans import meets_all, plans, strict_part

Word = tuple[int, ...]
Parts = frozenset[Part]
HEAD = 'grammar g version "1"\n'
NO_B = {"kind": "require", "text": "before c require b", "remedy": "b"}


class Oracle:
    """What a gate says of calls where parts of its core are left out, from lists of plans."""

    def __init__(self, artifact: Artifact) -> None:
        self.core: Core = artifact.core
        left = Relaxed() if artifact.relaxed is None else artifact.relaxed
        self.run: Parts = frozenset(
            (name, at) for name in ("limits", "requires", "forbids") for at in getattr(left, name)
        )
        core, texts = self.core, list(enforced(self.core, None).automaton)
        if core.start is not None:
            texts[1:3] = [f"{texts[1]} {texts[2]}"]
        self.parts: list[Part] = [("plan", 0), *[("start", 0)][: core.start is not None]]
        self.parts += [("tools", at) for at, tool in enumerate(core.tools) if tool.strict]
        for name in ("limits", "requires", "forbids"):
            self.parts += [(name, at) for at in range(len(getattr(core, name)))]
        self.text = dict(zip(self.parts, texts, strict=True))
        self.groups: dict[Group, dict[tuple[int, ...], int]] = {}
        for index, call in enumerate(core.calls):
            group, observed = split(core, call)
            self.groups.setdefault(group, {})[observed] = index
        self._words = plans(without(core, self.parts[1:]), MOST)
        self._plans: dict[Parts, set[Word]] = {}
        self._begun: dict[Parts, set[Word]] = {}

    def plans(self, out: Parts) -> set[Word]:
        """Those of the automaton without `out`."""
        out |= self.run
        if out not in self._plans:
            core = without(self.core, out)
            found = strict_part(core, [word for word in self._words if meets_all(core, word)])
            self._plans[out] = set(found)
            self._begun[out] = {word[:at] for word in found for at in range(len(word) + 1)}
        return self._plans[out]

    def held(self, out: Parts, word: Word, *, ends: bool) -> bool:
        """Whether the statements that are left to the run allow the word."""
        kept = self.run - out
        core = without(self.core, [part for part in self.parts if part not in kept])
        if ends:
            return meets_all(core, word)
        late = [("limits", at) for at, one in enumerate(core.limits) if one.least]
        late += [("requires", at) for at, one in enumerate(core.requires) if one.order == "after"]
        return meets_all(without(core, late), word)

    def goes_on(self, out: Parts, word: Word, call: int) -> bool:
        after = (*word, call)
        if not self.held(out, after, ends=False):
            return False
        if ("plan", 0) not in out:
            self.plans(out)
            return after in self._begun[out | self.run]
        core = without(self.core, out | self.run)
        return lets_through(core, word, WorkBudget(1 << 40), ends=False, ahead=[call])

    def ends(self, out: Parts, word: Word) -> bool:
        if not self.held(out, word, ends=True):
            return False
        if ("plan", 0) not in out:
            return word in self.plans(out)
        return lets_through(
            without(self.core, out | self.run), word, WorkBudget(1 << 40), ends=True
        )

    def allows(self, out: Parts, word: Word, calls: list[int] | None) -> bool:
        if calls is None:
            return self.ends(out, word)
        return any(self.goes_on(out, word, call) for call in calls)

    def because(self, word: Word, calls: list[int] | None) -> list[str]:
        """The definition of docs/gate.md."""
        if calls == []:
            return ["plan"]
        statements = self.parts[1:]
        alone = self.allows(frozenset(statements), word, calls)
        candidates = statements if alone else self.parts
        single = [part for part in candidates if self.allows(frozenset([part]), word, calls)]
        if single:
            return [self.text[part] for part in single]
        for size in range(2, len(candidates) + 1):
            for some in combinations(candidates, size):
                if self.allows(frozenset(some), word, calls):
                    return [self.text[part] for part in some]
        raise AssertionError((word, calls))

    def worlds(self, told: list[tuple[Group, str, tuple[int, ...]]]) -> set[Word | None]:
        found: set[Word | None] = {()}
        none: Parts = frozenset()
        for group, outcome, observed in told:
            calls = self.groups[group]
            chosen = {"failed": [], "done": [observed]}.get(outcome)
            many = self._combinations(group) if chosen is None else chosen
            after: set[Word | None] = set() if outcome == "done" else set(found)
            for word in found:
                for values in many:
                    call = calls.get(values)
                    goes = word is not None and call is not None
                    goes = goes and self.goes_on(none, word, call)
                    after.add((*word, call) if goes else None)
            found = after
        return found

    def _combinations(self, group: Group) -> list[tuple[int, ...]]:
        from itertools import product

        observed = [p for p in self.core.tools[group[0]].parameters if p.observed]
        return list(product(*[range(len(p.values)) for p in observed]))


def drawn(rng: random.Random) -> Artifact:
    """A grammar with a plan; some of its tools are strict, some have signatures."""
    while True:
        text = drawn_grammar(rng)
        if rng.random() < 0.4:
            text = text.replace("(r: yes | no)", "(r: yes | no) { strict }")
        if rng.random() < 0.3:
            text = text.replace("(s: 0 | 1)", "(s: 0 | 1) { strict }")
        if rng.random() < 0.3:
            text = text.replace("tool a\n", "tool a : s -> t\n")
            text = text.replace("tool b(x: 1 | 2)", "tool b(x: 1 | 2) : t -> s")
            text += f"\nstart s\ngoal {rng.choice(['s', 't', 's | t'])}"
        try:
            return tcc.compile_text(text)
        except tcc.CompileError:
            continue


def play(rng: random.Random, artifact: Artifact, oracle: Oracle, seen: Counter[Any]) -> None:
    """One session at random; each reason is held against the definition."""
    session = Gate(artifact)
    told: list[tuple[Group, str, tuple[int, ...]]] = []
    late: list[tuple[Any, Any]] = []
    for _ in range(MOST + 2):
        worlds = oracle.worlds(told)
        if worlds == {None}:
            break
        known = sorted(word for word in worlds if word is not None)
        allowed = []
        for group in sorted(oracle.groups):
            decision = session.check(artifact.core.tools[group[0]].name, given(session, group))
            if decision.allowed:
                allowed.append(group)
            elif decision.code in ("R201", "R203"):
                calls = list(oracle.groups[group].values())
                refused = [w for w in known if not oracle.allows(frozenset(), w, calls)]
                due = [oracle.because(word, calls) for word in refused]
                if rng.random() < 0.3:
                    late.append((decision, due))
                else:
                    held(decision.because, due, seen)
        if not session.may_finish:
            with pytest.raises(tcc.Refused) as refusal:
                session.finish()
            refused = [word for word in known if not oracle.ends(frozenset(), word)]
            due = [oracle.because(word, None) for word in refused]
            held(refusal.value.because, due, seen)
        if not allowed:
            break
        told.append(step(rng, session, artifact, rng.choice(allowed), told))
        unknown = [at for at, one in enumerate(told) if one[1] == "unknown"]
        if unknown and rng.random() < 0.4:
            at = rng.choice(unknown)
            group, _, observed = told[at]
            if observed in oracle.groups[group] and rng.random() < 0.6:
                session.resolve(at + 1, "done", named(session, group, observed))
                told[at] = group, "done", observed
            else:
                session.resolve(at + 1, "failed")
                told[at] = group, "failed", ()
    for decision, due in late:  # as of the decision, whatever came since
        held(decision.because, due, seen)


def step(
    rng: random.Random, session: Gate, artifact: Artifact, group: Group, told: list[Any]
) -> tuple[Group, str, tuple[int, ...]]:
    unknowns = sum(one[1] == "unknown" for one in told)
    outcome = rng.choice(("done", "done", "done", "failed", *(["unknown"] * (unknowns < 2))))
    parameters = [p for p in artifact.core.tools[group[0]].parameters if p.observed]
    observed = tuple(rng.randrange(len(p.values)) for p in parameters)
    with session.call(artifact.core.tools[group[0]].name, given(session, group)) as permit:
        if outcome == "done":
            permit.done(observed=named(session, group, observed))
        elif outcome == "failed":
            permit.failed("said so")
    return group, outcome, observed


def held(because: list[Any], due: list[list[str]], seen: Counter[Any]) -> None:
    """Each refusal in some run of outcomes has its reasons; these are one of them."""
    found = [reason["text"] for reason in because]
    if not due:
        assert [reason["kind"] for reason in because] == ["unknown"]
        seen["unknown"] += 1
    else:
        assert found in due
        seen[len(due) > 1, found == ["plan"], min(len(found), 2)] += 1


def campaign(seed: str, grammars: int, batches: pytest.MonkeyPatch) -> Counter[Any]:
    seen: Counter[Any] = Counter()
    for at in range(grammars):
        rng = random.Random(f"{seed} {at}")
        for module in (giving, sessions):
            batches.setattr(module, "APART", (1, 2, 128)[at % 3])  # calls a batch of keeping up
        artifact = relaxed(rng)[0] if at % 4 == 3 else drawn(rng)
        oracle = Oracle(artifact)
        for _ in range(3):
            play(rng, artifact, oracle, seen)
    return seen


def test_because_is_its_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = campaign("reasons", 28, monkeypatch)
    assert min(seen[False, True, 1], seen[False, False, 1], seen[False, False, 2]) > 15, seen
    assert min(seen[True, True, 1], seen[True, False, 1], seen["unknown"]) > 5, seen


@pytest.mark.campaign
def test_because_is_its_definition_thousands_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign("many reasons", 4000, monkeypatch)


def test_because_and_why_agree() -> None:
    seen: Counter[int] = Counter()
    for at in range(40):
        rng = random.Random(f"agree {at}")
        artifact = drawn(rng)
        oracle, session = Oracle(artifact), Gate(artifact)
        places = {s.text: frozenset(s.parts) for s in statements_of(artifact.core, {})}
        calls: list[str] = []
        for _ in range(3):
            for group in sorted(oracle.groups):
                asked = [artifact.core.calls[call].text for call in oracle.groups[group].values()]
                if len(asked) > 1:
                    continue
                name = artifact.core.tools[group[0]].name
                decision = session.check(name, given(session, group))
                if decision.allowed:
                    continue
                found = tcc.why(artifact, [*calls, *asked], every=True)
                sets = [
                    frozenset(part for one in chosen for part in places.get(one.text, one.parts))
                    for chosen in (found.because, *found.others)
                ]
                parts = [part for part, text in oracle.text.items()
                         if any(one["text"] == text for one in decision.because)]  # fmt: skip
                without_plan = [one for one in sets if ("plan", 0) not in one]
                if len(without_plan) > 1 or (len(parts) > 1 and len(sets[0]) == 1):
                    assert {frozenset([one]) for one in parts} == set(without_plan) or (
                        frozenset(parts) in sets
                    )
                else:
                    assert frozenset(parts) in sets or not without_plan
                seen[len(parts)] += 1
            allowed = [one for one in session.allowed() if not table_of(session, one).observed]
            if not allowed:
                break
            chosen = rng.choice(allowed)
            do(session, chosen.tool, dict(chosen.arguments))
            calls.append(session.word()[-1])
    assert seen[1] > 100 and seen[2] > 5, seen


def table_of(session: Gate, one: Any) -> Any:
    return session._policy.tables.named(one.tool)


SEVERAL = HEAD + "tool a\ntool b\ntool c\nplan = (a | b | c){0,6}\nlimit depth <= 5\n"


@pytest.mark.parametrize(
    ("statements", "made", "tool", "because"),
    [
        ("limit count(a) <= 1\nbefore a require b", "", "a", ["before a require b"]),
        ("limit count(a) <= 1\nbefore a require no a since any - a", "a", "a", ["limit count(a) <= 1", "before a require no a since any - a"]),
        ("limit count(a) <= 0\nbefore a require b", "", "a",
         ["limit count(a) <= 0", "before a require b"]),
        ("after a owe b\nbefore b require no a\nbefore a require no b", "", "a",
         ["after a owe b", "before b require no a\nbefore a require no b"]),
        ("finally require count(a) >= 3\nbefore a require no a since any - a", "", "b",
         ["limit depth <= 5", "finally require count(a) >= 3", "before a require no a since any - a"]),
        ("limit count(a) <= 0", "", "a", ["limit count(a) <= 0"]),
        ("limit depth <= 2", "c c", "c", ["limit depth <= 2"]),
        ("limit depth <= 6", "c c c c c c", "c", ["plan", "limit depth <= 6"]),
    ],
)  # fmt: skip
def test_what_is_named(statements: str, made: str, tool: str, because: list[str]) -> None:
    text = SEVERAL + statements
    if "depth" in statements:
        text = text.replace("limit depth <= 5\n", "")
    session = gate(text)
    for name in made.split():
        do(session, name)
    assert [reason["text"] for reason in session.check(tool).because] == because


def test_the_plan_is_named_only_where_it_refuses_by_itself() -> None:
    text = (
        HEAD
        + "tool a\ntool b\ntool c\nplan = a | b c\nbefore c require no b since any - b\nlimit count(c) <= 0"
    )
    because = gate(text).check("b").because
    assert [reason["text"] for reason in because] == [
        "limit count(c) <= 0",
        "before c require no b since any - b",
    ]


ANY = HEAD + "tool a\ntool b\ntool c\ntool d\nplan = any{0,300}\nbefore c require b\n"


def test_reasons_are_known_after_thousands_of_calls() -> None:
    session = gate(ANY.replace("300", "4200"))
    offer = session._policy.machine.offer("a")
    assert offer is not None
    for _ in range(4150):
        session._access.session.begin(offer, ())
        session._access.session.settle("done", (), False)
    assert session.check("c").because == [NO_B]


def test_no_reason_has_more_than_a_batch_to_catch_up_with(tmp_path: Path) -> None:
    text, path = ANY.replace("300", "600"), tmp_path / "s.ledger"
    with gate(text, ledger=path, durable=False) as session:
        for calls in range(1, 400):
            do(session, "a")
            kept = session._access.session.trail
            assert (calls - 2 < 128) if kept is None else 0 <= calls - 1 - kept.at < 128
    with gate(text, ledger=path, durable=False) as reopened:
        assert reopened._access.session.trail.at == 399
        assert reopened.check("c").because == [NO_B]


@pytest.mark.parametrize("name", ["_STEPS", "_ALL_STEPS", "_MOST_TRIALS", "_BUILD"])
def test_past_the_bound_nobody_is_blamed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving, name, -(1 << 40))
    session = tcc.Gate(tcc.compile_text(ANY))
    because = session.check("c").because
    assert [reason["kind"] for reason in because] == ["undecided"]
    assert "too much" not in because[0]["text"] and "more work" in because[0]["text"]


def test_of_an_end_all_that_do_not_let_it_are_named() -> None:
    """Counters that multiply; of an end each statement speaks by itself."""
    tools = "\n".join(f"tool t{at}" for at in range(12))
    texts = [f"finally require count(t{at}) >= 4\nafter t{at - 1} owe t{at}" for at in range(1, 12)]
    text = f"{HEAD}{tools}\nplan = any{{0,44}}\n" + "\n".join(texts)
    core = tcc.compile_text(HEAD + tools + "\nplan = any{0,44}").core
    assert len(core.calls) == 12
    artifact = tcc.compile_text(text, relax=["uses", "require"])
    session = tcc.Gate(artifact)
    do(session, "t1")
    with pytest.raises(tcc.Refused) as refused:
        session.finish()
    kinds = {reason["kind"] for reason in refused.value.because}
    assert kinds == {"limit", "require"}


def test_reasons_are_read_by_many_threads_while_the_session_goes_on() -> None:
    session = gate(ANY)
    late: list[Any] = []
    wrong: list[Any] = []
    due = [NO_B]

    def read() -> None:
        for _ in range(200):
            because = session.check("c").because
            if because != due:
                wrong.append(because)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        late.append(session.check("c"))
        do(session, "a")
    for thread in threads:
        thread.join()
    assert not wrong
    do(session, "b")
    assert session.check("c").allowed
    assert all(decision.because == due for decision in random.Random(1).sample(late, 40))


def test_sessions_of_one_artifact_keep_apart() -> None:
    one, other = gate(ANY), gate(ANY)
    do(one, "b")
    do(other, "a")
    assert one.check("c").allowed
    assert [reason["kind"] for reason in other.check("c").because] == ["require"]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving, "_MOST_KEPT", 40)
    artifact = tcc.compile_text(
        SEVERAL.replace("0,6", "0,400").replace("5", "390") + "before a require no c since any - c"
    )
    session = tcc.Gate(artifact)
    do(session, "c")
    first: Any = None
    for _ in range(120):
        assert [one["text"] for one in session.check("a").because] == [
            "before a require no c since any - c"
        ]
        do(session, "c")
        kept = artifact.kept["reasons"]
        first = first or kept
        assert len(kept.planned[0].nodes) + len(kept.controls) < 600
        assert sum(len(core.stops) for core in kept._cores.values()) < 400
    assert artifact.kept["reasons"] is not first
