"""Proofs: what is written is VALID, and what is forged is refused with its own code."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc.library.proving import Proof
from tcc_certs.formats.codec import encode
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.compared import Part, held_tokens, renamed
from tcc_runtime.exact import certificate
from tests.cli.conftest import tcc as tcc_command  # noqa: F401 - a fixture
from tests.exact.test_brute import ask as compared, count

SHOP = """grammar shop version "1"

tool find(order: text ~ "p|q", user: text ~ "q|r")
tool refund(part: half | full, order: text ~ "p|q", amount: number 0 .. 20)

plan = (find | refund){0,3}

before refund require find(same order)
limit sum(refund.amount) <= 50
"""
# What one key at a time does not show: the left side's monitor speaks of two fields at once.
PAIRS = """grammar pairs version "1"

tool a(x: text ~ "p|q", y: text ~ "p|q")
tool b(x: text ~ "p|q", y: text ~ "p|q")

plan = (a | b){0,3}

before b require no a(same (x, y))
"""


def lines_of(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def file_of(lines: list[Any]) -> bytes:
    return b"".join((line if isinstance(line, bytes) else encode(line)) + b"\n" for line in lines)


def asked(text: str, statement: str | None = None, **more: Any) -> tuple[Proof, list[bytes]]:
    artifacts = [tcc.compile_text(text)]
    if "implies" in more:
        more["implies"] = tcc.compile_text(more["implies"])
        artifacts.append(more["implies"])
    return tcc.prove(artifacts[0], statement, **more), [artifact_bytes(one) for one in artifacts]


def code_of(data: bytes, artifacts: list[bytes]) -> str:
    found = check_proof(data, artifacts)
    return "VALID" if found.finding is None else found.finding.code.value


def by_all(
    text: str, statement: str | None = None, other: str | None = None
) -> tuple[list[Any], list[bytes]]:
    """The list of the whole space."""
    artifacts = tuple(tcc.compile_text(one) for one in (text, other) if one is not None)
    kind = "statement" if other is None else "implies"
    of = certificate.ProvedQuestion(kind=kind, text=statement, artifacts=artifacts)
    whole = certificate.by_all(of.system(), max_states=10**5, check_time=lambda: None)
    assert whole is not None
    return lines_of(whole.certificate(of, "proved")), [artifact_bytes(one) for one in artifacts]


STATEMENT = "require find before refund same order"


@pytest.mark.parametrize(
    ("statement", "more", "verdict"),
    [
        (STATEMENT, {}, "proved"),
        ("never refund(part=full) before find same order", {}, "refuted"),
        ("require refund after find", {}, "refuted"),
        ("limit depth <= 3", {}, "proved"),
        ("limit uses(refund) per order <= 2", {}, "proved"),
        ("limit sum(refund.amount) <= 50.5", {}, "proved"),
        ("limit sum(refund.amount) <= 39", {}, "refuted"),
        ("limit uses(find) <= 3", {}, "proved"),
        ("limit uses(refund) >= 1", {}, "refuted"),
        ("require find before each refund(part=full)", {}, "refuted"),
        ("forbid refund find find", {}, "proved"),
        (None, {"reachable": "refund(part=full)"}, "proved"),
        (None, {"implies": SHOP.replace("<= 50", "<= 60")}, "proved"),
        (None, {"implies": SHOP.replace("<= 50", "<= 30")}, "refuted"),
        (None, {"finishable": True}, "proved"),
    ],
)
def test_proofs_of_every_question_are_valid(
    statement: str | None, more: dict[str, Any], verdict: str
) -> None:
    found, artifacts = asked(SHOP, statement, **more)
    assert found.verdict == verdict
    assert found.certificate is not None
    report = check_proof(found.certificate, artifacts)
    assert (report.verdict, report.proof, str(report.finding)) == (0, verdict, "None")
    assert report.question == lines_of(found.certificate)[0]["question"]


def test_a_stuck_session_is_proved_to_be_one() -> None:
    text = SHOP.replace("(find | refund){0,3}", "find refund refund").replace("0 .. 20", "20 .. 40")
    found, artifacts = asked(text, finishable=True)
    assert found.verdict == "refuted" and found.certificate is not None
    assert code_of(found.certificate, artifacts) == "VALID"
    lines = lines_of(found.certificate)
    lines[2][2][0][1] = "20"  # an amount that leaves a way
    assert code_of(file_of(lines), artifacts) in ("T201", "T206")


@pytest.mark.parametrize("seed", range(4))
def test_every_certificate_of_random_questions_is_valid(seed: int) -> None:
    for at in range(8 * seed, 8 * seed + 8):
        every_certificate(at, {})


def every_certificate(seed: int, tally: dict[str, int]) -> None:
    for found, artifacts in compared(seed, tally):
        if found.verdict == "undecided":
            continue
        data = found.certificate
        assert data is not None, (seed, found)
        report = check_proof(data, [artifact_bytes(one) for one in artifacts])
        assert report.finding is None, (seed, found, report)
        assert report.proof == found.verdict
        count(tally, "proofs VALID")
        # The same file never shows the opposite.
        lines = lines_of(data)
        lines[0]["proof"] = "proved" if found.verdict == "refuted" else "refuted"
        assert check_proof(file_of(lines), [artifact_bytes(one) for one in artifacts]).verdict != 0


# Forgeries.


def changed_at(lines: list[Any], change: Callable[[list[Any]], None]) -> bytes:
    copy = json.loads(json.dumps(lines))
    change(copy)
    return file_of(copy)


def without_state(lines: list[Any]) -> None:
    """The last state left out, its steps too, and whatever led there leads to the first."""
    size = lines[0]["parts"][0]["states"]
    lines[0]["parts"][0]["states"] -= 1
    del lines[-1], lines[size]
    for row in lines[size + 1 :]:
        for step in row:
            step[0] = 0 if step[0] == size - 1 else step[0]


def step_skipped(lines: list[Any]) -> None:
    size = lines[0]["parts"][0]["states"]
    lines[size + 2].pop()


def step_more(lines: list[Any]) -> None:
    size = lines[0]["parts"][0]["states"]
    lines[size + 2].append(lines[size + 2][-1])


def negative_state(lines: list[Any]) -> None:
    """The last state, counted from the end."""
    size = lines[0]["parts"][0]["states"]
    for row in lines[size + 2 :]:
        for step in row:
            if step[0] == size - 1:
                step[0] = -1


def step_to_another(lines: list[Any]) -> None:
    size = lines[0]["parts"][0]["states"]
    lines[size + 2][0][0] = 0


def first_renamed(lines: list[Any], by: int) -> None:
    size = lines[0]["parts"][0]["states"]
    for row in lines[size + 2 :]:
        for step in row:
            if len(step) > 1:
                step[1] += by
                return
    raise AssertionError("no step with a renaming")


def twice_the_same(lines: list[Any]) -> None:
    size = lines[0]["parts"][0]["states"]
    for row in lines[size + 2 :]:
        for step in row:
            if len(step) > 2:
                step[2] = step[1]
                return
    raise AssertionError("no step with two tokens")


def smaller_interval(lines: list[Any]) -> None:
    size = lines[0]["parts"][0]["states"]
    for state in lines[1 : size + 1]:
        if state[3][0][1]:
            state[3][0][1] -= 1
            return


def fact_forgotten(lines: list[Any]) -> None:
    """The asked statement's memory is left out of every state."""
    size = lines[0]["parts"][0]["states"]
    for state in lines[1 : size + 1]:
        state[2] = [fact for fact in state[2] if fact[0] == 0]


def one_state_more(lines: list[Any]) -> None:
    """The last state, which has no step, once more."""
    size = lines[0]["parts"][0]["states"]
    assert lines[-1] == []
    lines[0]["parts"][0]["states"] += 1
    lines.insert(size + 1, lines[size])
    lines.append([])


FORGERIES: list[tuple[str, Callable[[list[Any]], None], set[str]]] = [
    ("a state left out", without_state, {"T203"}),
    ("a step skipped", step_skipped, {"T202"}),
    ("a step more", step_more, {"T202"}),
    ("a number below 0", negative_state, {"T101"}),
    ("a token below 0", lambda lines: first_renamed(lines, -1000), {"T101"}),
    ("a step to another state", step_to_another, {"T203"}),
    ("a renaming of other atoms", lambda lines: first_renamed(lines, 100), {"T205"}),
    ("a renaming that is none", twice_the_same, {"T204"}),
    ("an interval too small", smaller_interval, {"T206"}),
    ("the asked statement's key forgotten", fact_forgotten, {"T203"}),
    ("another core", lambda lines: lines[0]["cores"].__setitem__(0, "0" * 64), {"T103"}),
    ("one core more", lambda lines: lines[0]["cores"].append("0" * 64), {"T101"}),
    ("a statement about no tool", lambda lines: ask(lines, "forbid nobody"), {"T102"}),
    (
        "another statement",
        lambda lines: ask(lines, STATEMENT.replace("require", "forbid")),
        {"T203", "T207"},
    ),
    ("another kind", lambda lines: lines[0]["question"].update(kind="reachable"), {"T102"}),
    ("no such monitor", lambda lines: lines[0]["parts"][0].update(uses=[7]), {"T209"}),
    ("keys that are left out", lambda lines: lines[0]["parts"][0].update(keys="each"), {"T209"}),
    ("a member more", lambda lines: lines[0].update(more=1), {"T101"}),
    ("a line more", lambda lines: lines.append([]), {"T101"}),
    ("a line less", lambda lines: lines.pop(), {"T101"}),
    ("a later version", lambda lines: lines[0].update(format_version="2.0"), {"D102"}),
    ("no start", lambda lines: lines[1].__setitem__(0, [[0], []]), {"T201"}),
    ("facts the other way round", lambda lines: lines[2][2].reverse(), {"T101"}),
    ("a fact twice", lambda lines: lines[2][2].append(lines[2][2][-1]), {"T101"}),
    ("a state that nothing leads to", one_state_more, {"T203"}),
    ("too many states", lambda lines: lines[0]["parts"][0].update(states=1 << 21), {"D201"}),
]


def ask(lines: list[Any], text: str) -> None:
    lines[0]["question"]["text"] = text


@pytest.fixture(scope="module")
def whole() -> tuple[list[Any], list[bytes]]:
    return by_all(SHOP + "forbid find before find same user\n", STATEMENT)


@pytest.mark.parametrize(("name", "change", "codes"), FORGERIES, ids=[one[0] for one in FORGERIES])
def test_a_forged_list_is_refused(
    whole: tuple[list[Any], list[bytes]],
    name: str,
    change: Callable[[list[Any]], None],
    codes: set[str],
) -> None:
    lines, artifacts = whole
    assert code_of(file_of(lines), artifacts) == "VALID"
    assert code_of(changed_at(lines, change), artifacts) in codes


def test_monitors_that_are_needed_may_not_be_forgotten(
    whole: tuple[list[Any], list[bytes]],
) -> None:
    lines, artifacts = whole
    changed_file = changed_at(lines, lambda copy: copy[0]["parts"][0].update(uses=[]))
    assert code_of(changed_file, artifacts) in ("T202", "T203", "T204", "T207")


def test_a_finish_may_not_be_forgotten() -> None:
    """A list of `every find is followed by a refund` is closed, and ends where it may not."""
    artifact = tcc.compile_text(SHOP)
    of = certificate.ProvedQuestion(
        kind="statement", text="require refund after find", artifacts=(artifact,)
    )
    system = of.system()
    part = Part(tracked=None, rule=None, uses=frozenset({0}))
    made = certificate.closed(system, part, ends=False, max_states=10**4, check_time=lambda: None)
    assert made is not None
    forged = certificate.Keyed(lists=(made,), keys="all").certificate(of, "proved")
    assert code_of(forged, [artifact_bytes(artifact)]) == "T208"


def test_keys_of_the_question_may_not_be_left_out() -> None:
    found, artifacts = asked(SHOP, STATEMENT)
    assert found.certificate is not None
    lines = lines_of(found.certificate)
    assert {part["keys"] for part in lines[0]["parts"]} == {"each"}
    assert len(lines[0]["parts"]) > 1
    sizes = [part["states"] for part in lines[0]["parts"]]
    first = lines[: 1 + 2 * sizes[0] + 1]
    first[0]["parts"] = first[0]["parts"][:1]
    assert code_of(file_of(first), artifacts) == "T209"


def test_one_key_at_a_time_is_not_enough_for_everything() -> None:
    same = "forbid a before b same x, y"
    found, artifacts = asked(PAIRS, same)
    assert found.proved and found.certificate is not None
    assert code_of(found.certificate, artifacts) == "VALID"


def renamed_everywhere(of: certificate.ProvedQuestion, part: Part) -> certificate.Closed:
    """The closed list of a part in which each token has another name as soon as it is held."""
    system = of.system()
    atoms, number = len(system.atoms), dict[Any, int]()
    made = certificate.Closed(part=part, states=[], first=[], steps=[])

    def row(state: Any) -> list[int]:
        names: dict[int, int] = {}
        for token in held_tokens(state[2]):
            names[token] = token % atoms + atoms * (7 + len(names))
        to = (*state[:2], renamed(state[2], names), state[3])
        if to not in number:
            number[to] = len(number)
            made.states.append(to)
        return [number[to], *names.values()]

    made.first = row(system.starts(part)[0])
    for state in made.states:
        moves = list(system.moves(part, state))
        assert all(move.state is not None for move in moves)
        made.steps.append(encode([row(move.state) for move in moves]))
    return made


@pytest.mark.parametrize("keys", ["each", "call"])
@pytest.mark.parametrize(
    "text",
    [
        "never find before refund same order",
        "forbid find with refund same order",
        "limit uses(find) per order <= 1",
    ],
)
def test_the_tokens_of_a_key_keep_their_names(text: str, keys: str) -> None:
    """Else what was remembered of the key that is asked about would be of another one."""
    artifact = tcc.compile_text(SHOP.replace("require find before refund same order\n", ""))
    assert tcc.prove(artifact, text).verdict == "refuted"
    of = certificate.ProvedQuestion(kind="statement", text=text, artifacts=(artifact,))
    parts = of.system().parts(frozenset(), call=keys == "call")
    lists = tuple([renamed_everywhere(of, part) for part in parts])
    forged = certificate.Keyed(lists=lists, keys=keys).certificate(of, "proved")
    assert code_of(forged, [artifact_bytes(artifact)]) == "T204"


def test_a_constant_keeps_its_name() -> None:
    """The left lists the value, so it is found again by its atom, and not among what is held."""
    lists = """grammar one version "1"

tool a(x: p | q)
tool b(x: p | q)

plan = a b
"""
    other = lists.replace("x: p | q", '; x: text ~ "p|q"') + "forbid a before b same x\n"
    artifacts = tcc.compile_text(lists), tcc.compile_text(other)
    assert tcc.prove(artifacts[0], implies=artifacts[1]).verdict == "refuted"
    of = certificate.ProvedQuestion(kind="implies", text=None, artifacts=artifacts)
    made = renamed_everywhere(of, Part(tracked=None, rule=None, uses=frozenset()))
    forged = certificate.Keyed(lists=(made,), keys="all").certificate(of, "proved")
    assert code_of(forged, [artifact_bytes(one) for one in artifacts]) == "T204"


SESSION_FORGERIES: list[tuple[str, Callable[[list[Any]], None], str]] = [
    ("a call that is not let through", lambda lines: lines.__setitem__(1, lines[2]), "T301"),
    ("another value", lambda lines: lines[1][2][0].__setitem__(1, "z"), "T301"),
    ("a value that no monitor takes", lambda lines: lines[1][2][0].__setitem__(1, "q"), "T301"),
    ("another tool", lambda lines: lines[1].__setitem__(0, "nobody"), "T301"),
    (
        "it shows it before",
        lambda lines: lines[0].update(calls=3) or lines.append(lines[1]),
        "T302",
    ),
    ("it shows nothing", lambda lines: ask(lines, "never find before find"), "T302"),
    (
        "no call at all",
        lambda lines: lines[0].update(calls=0) or lines.__delitem__(slice(1, 3)),
        "T302",
    ),
    ("another end", lambda lines: lines[0].update(ends="finish"), "T302"),
    ("an end that is none", lambda lines: lines[0].update(ends="stuck"), "T101"),
    (
        "an end that is none, and nothing shown",
        lambda lines: lines[0].update(calls=1, ends="") or lines.pop(),
        "T101",
    ),
    ("a value twice", lambda lines: lines[1][2].append(lines[1][2][0]), "T101"),
]


@pytest.mark.parametrize(
    ("name", "change", "code"), SESSION_FORGERIES, ids=[one[0] for one in SESSION_FORGERIES]
)
def test_a_forged_session_is_refused(
    name: str, change: Callable[[list[Any]], None], code: str
) -> None:
    found, artifacts = asked(SHOP, "never find before refund same order")
    assert found.verdict == "refuted" and found.certificate is not None
    assert code_of(changed_at(lines_of(found.certificate), change), artifacts) == code


def test_forged_ends_are_refused() -> None:
    found, artifacts = asked(SHOP.replace("{0,3}", "{1,3}"), finishable=True)
    assert found.proved and found.certificate is not None
    lines = lines_of(found.certificate)
    states, ends = lines[0]["states"], lines[0]["ends"]
    first = 2 + 2 * states  # of the states that have an end
    at = next(i for i in range(first + 1, first + 2 * ends, 2) if lines[i])
    assert code_of(changed_at(lines, lambda copy: copy[at].clear()), artifacts) == "T401"
    beyond = changed_at(lines, lambda copy: copy[at][1].__setitem__(0, (at - first) // 2))
    assert code_of(beyond, artifacts) == "T401"  # a step to itself
    assert code_of(changed_at(lines, lambda copy: copy[at].__setitem__(0, 99)), artifacts) == "T401"
    assert code_of(changed_at(lines, lambda copy: copy[-1].pop()), artifacts) == "T401"


@pytest.mark.parametrize("member", ["states", "ends"])
def test_ends_are_no_more_than_the_states_of_a_proof(member: str) -> None:
    found, artifacts = asked(SHOP, finishable=True)
    assert found.certificate is not None
    changed_file = changed_at(
        lines_of(found.certificate), lambda lines: lines[0].__setitem__(member, (1 << 20) + 1)
    )
    assert code_of(changed_file, artifacts) == "D201"


def test_a_session_that_may_be_finished_is_not_stuck() -> None:
    artifact = tcc.compile_text(SHOP)
    of = certificate.ProvedQuestion(kind="finishable", text=None, artifacts=(artifact,))
    head = of.head("refuted", states=0, calls=0)
    assert code_of(file_of([head, [0]]), [artifact_bytes(artifact)]) == "T201"
    system = of.system()
    part = Part(tracked=None, rule=None, uses=frozenset({0}))
    made = certificate.closed(system, part, ends=False, max_states=10**4, check_time=lambda: None)
    assert made is not None
    head = of.head("refuted", states=len(made.states), calls=0)
    assert code_of(file_of([head, *made.lines()]), [artifact_bytes(artifact)]) == "T402"
