"""Proofs: what is written is VALID, and what is forged is refused with its own code."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc.library.proving import Proof
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.proof import check, moves, parts, question
from tcc_certs.proof import compared as compared_sides
from tcc_certs.proof.atoms import atoms_of
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.compared import Part, held_tokens, renamed
from tcc_certs.values.types import TextType
from tcc_runtime.exact import certificate, system
from tests.cli.conftest import Tcc
from tests.cli.conftest import tcc as tcc_command  # noqa: F401 - a fixture
from tests.exact.test_brute import ask as compared
from tests.exact.test_brute import count

SHOP = """grammar shop version "1"
tool find(; order: text ~ "p|q", user: text ~ "q|r")
tool refund(part: half | full; order: text ~ "p|q", amount: number 0 .. 20)
plan = (find | refund){0,3}
require find before refund same order
limit sum(refund.amount) <= 50
"""
# What one key at a time does not show: the left side's monitor speaks of two fields at once.
PAIRS = """grammar pairs version "1"
tool a(; x: text ~ "p|q", y: text ~ "p|q")
tool b(; x: text ~ "p|q", y: text ~ "p|q")
plan = (a | b){0,3}
forbid a before b same x, y
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
    lists = 'grammar one version "1"\ntool a(x: p | q)\ntool b(x: p | q)\nplan = a b\n'
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


# Hostile files.


def test_any_byte_changed_keeps_question_and_verdict_or_is_refused() -> None:
    rng = random.Random(4)
    for text, more in (
        (STATEMENT, {}),
        ("never find before refund", {}),
        (None, {"finishable": True}),
    ):
        found, artifacts = asked(SHOP, text, **more)
        data = found.certificate
        assert data is not None
        question = lines_of(data)[0]["question"]
        for _ in range(150):
            at = rng.randrange(len(data))
            forged = bytearray(data)
            forged[at] = rng.choice(b'0123456789[]{},"az \n\xff')
            report = check_proof(bytes(forged), artifacts)
            if report.verdict == 0:
                assert (dict(report.question), report.proof) == (question, found.verdict)


def test_members_of_other_types_are_refused(whole: tuple[list[Any], list[bytes]]) -> None:
    rng = random.Random(5)
    lines, artifacts = whole
    for _ in range(400):
        copy = json.loads(json.dumps(lines))
        place: Any = copy
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = rng.choice(list(keys))
            if isinstance(place[key], (list, dict)) and place[key] and rng.random() < 0.8:
                place = place[key]
                continue
            break
        place[key] = rng.choice(
            ["", "x", 0, 1, 2, -1, 2**53 - 1, "9" * 400, [], {}, [[]], True, [0, 0, [0], 1]]
        )
        report = check_proof(file_of(copy), artifacts)
        if report.verdict == 0:
            assert report.question == lines[0]["question"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "T101"),
        (b"\n", "B101"),
        (b"[]\n", "T101"),
        (b"[" * 2000 + b"\n", "D201"),
        (b'{"format":"tcc.proof"}\n', "D102"),
        (b"1" * (1 << 24) + b"1\n", "D201"),
    ],
)
def test_what_is_no_proof_is_refused(data: bytes, code: str) -> None:
    assert code_of(data, [artifact_bytes(tcc.compile_text(SHOP))]) == code


def test_the_work_that_a_file_asks_for_is_bounded(
    whole: tuple[list[Any], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, artifacts = whole
    data, steps = file_of(lines), check_proof(file_of(lines), artifacts).checked["steps"]
    with monkeypatch.context() as patch:
        patch.setattr(moves, "MAX_TRIED", 8 * steps)
        assert code_of(data, artifacts) == "VALID"
        patch.setattr(moves, "FACTS", 1 / 16)  # as if states had many
        assert code_of(data, artifacts) == "D201"
    calls = 3  # of the core; the question names two patterns
    monkeypatch.setattr(question, "MAX_NAMED", 2 * calls - 1)
    assert code_of(changed_at(lines, lambda copy: ask(copy, "forbid any any")), artifacts) == "D201"
    assert code_of(changed_at(lines, lambda copy: ask(copy, "forbid any")), artifacts) != "D201"


def test_types_of_one_sort_and_their_patterns_are_few() -> None:
    few = [TextType(most=most) for most in range(1, 25)]
    assert len(atoms_of("text", few, ())) == 24
    with pytest.raises(Rejected) as refusal:
        atoms_of("text", [*few, TextType(most=25)], ())
    assert (refusal.value.code.value, refusal.value.path) == ("D201", "types")
    # Each doubles the states of the product: what is in each is not known then.
    long = [TextType(pattern=f"[ab]*a[ab]{{{at}}}") for at in range(4, 13)]
    assert {(one.least, one.most) for one in atoms_of("text", long[:8], ())} == {(0, None)}
    with pytest.raises(Rejected) as refusal:
        atoms_of("text", long, ())
    assert (refusal.value.code.value, refusal.value.path) == ("D201", "types")


@pytest.mark.parametrize("states", [-1, True, "1"])
def test_counts_are_whole_numbers(whole: tuple[list[Any], list[bytes]], states: object) -> None:
    lines, artifacts = whole
    forged = changed_at(lines, lambda copy: copy[0]["parts"][0].update(states=states))
    assert code_of(forged, artifacts) == "T101"
    session, given = asked(SHOP, "never find")
    assert session.certificate is not None
    lines = lines_of(session.certificate)
    lines[0]["calls"] = states
    assert code_of(file_of(lines), given) == "T101"


def test_sizes_and_ends_are_looked_at(
    whole: tuple[list[Any], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, artifacts = whole
    data = file_of(lines)
    assert code_of(data[:-1], artifacts) == "T101"
    other = changed_at(lines, lambda copy: copy[0].update(format="tcc.session"))
    assert code_of(other, artifacts) == "T101"
    monkeypatch.setattr(check, "MAX_PROOF_BYTES", len(data) - 1)
    assert code_of(data, artifacts) == "D201"


def test_a_call_that_breaks_may_be_looked_at_whole() -> None:
    """The key of the question is not enough: the way there has another, too."""
    text = SHOP.replace(
        "tool refund(part: half | full;",
        'tool mark(; order: text ~ "p|q", amount: number 0 .. 20)\ntool refund(part: half | full;',
    )
    text = (
        text.replace("(find | refund)", "(find | mark | refund)")
        .replace(
            "require find before refund same order",
            "require find before mark same order\nrequire mark before refund same order, amount",
        )
        .replace("limit sum(refund.amount) <= 50\n", "")
    )
    found, artifacts = asked(text, STATEMENT)
    assert found.proved and found.certificate is not None
    lines = lines_of(found.certificate)
    assert {part["keys"] for part in lines[0]["parts"]} == {"call"}
    assert code_of(found.certificate, artifacts) == "VALID"
    lines[0]["parts"][0]["keys"] = "each"
    assert code_of(file_of(lines), artifacts) == "T209"


def test_the_number_of_artifacts_is_that_of_the_question() -> None:
    found, artifacts = asked(SHOP, STATEMENT)
    assert found.certificate is not None
    assert code_of(found.certificate, artifacts * 2) == "T104"
    assert code_of(found.certificate, []) == "T104"
    other = artifact_bytes(tcc.compile_text(PAIRS))
    assert code_of(found.certificate, [other]) == "T103"


@pytest.mark.parametrize(
    "text",
    [
        "forbid find(part=full)", "forbid find with", "require find", "limit uses(find) <= x",
        "forbid find before refund same user = part", "limit price >= 3", "limit price <= 3 s",
        "limit latency <= 3", "limit cost <= 0.0000000001",
        "limit price <= 0.5", "limit latency <= 9223372036854775808", "plan = find",
        "forbid find before any same order", "forbid (find | refund) before refund same order",
        "limit sum(find.order) <= 3", 'forbid "', "limit uses(find) per part <= 1",
        "require find before each refund same order, order extra",
        "limit sum(refund.part) <= 2", "forbid " + "(" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_statement_is_no_question(text: str) -> None:
    found, artifacts = asked(SHOP, STATEMENT)
    assert found.certificate is not None
    lines = lines_of(found.certificate)
    ask(lines, text)
    assert code_of(file_of(lines), artifacts) in ("T102", "D101", "D201", "B101")


@pytest.mark.parametrize("text", ["forbid any before b same x", "limit uses(any) per x <= 0"])
def test_any_is_no_tool_of_that_name(text: str) -> None:
    artifact = tcc.compile_text(
        'grammar g version "1"\ntool "any"(; x: text)\ntool a(; x: text)\ntool b(; x: text)\n'
        "plan = a b\n"
    )
    of = certificate.ProvedQuestion(kind="statement", text=text, artifacts=(artifact,))
    with pytest.raises(Rejected) as refusal:
        of.system()
    assert refusal.value.code.value == "T102"
    quoted = certificate.ProvedQuestion(
        kind="statement", text=text.replace("any", '"any"'), artifacts=(artifact,)
    )
    assert len(quoted.system().right.core.monitors) == 1


def test_the_command_writes_and_checks(
    tcc_command: Tcc,  # noqa: F811
    tmp_path: Path,
) -> None:
    grammar_file, artifact, proof = tmp_path / "s.tcg", tmp_path / "s.tcca", tmp_path / "p.tccp"
    grammar_file.write_text(SHOP, "utf-8")
    assert tcc_command("compile", grammar_file, "-o", artifact).code == 0
    assert tcc_command("prove", grammar_file, STATEMENT, "-o", proof).code == 0
    found = tcc_command("check", proof, "--artifact", artifact, "--json")
    assert (found.code, found.json["verdict"], found.json["proof"]) == (0, "VALID", "proved")
    assert found.json["question"] == {"kind": "statement", "text": STATEMENT}
    proof.write_bytes(proof.read_bytes().replace(b"order", b"other"))
    found = tcc_command("check", proof, "--artifact", artifact, "--json")
    assert (found.code, found.json["findings"][0]["code"]) == (1, "T102")
    proof.write_bytes(b'{"format":"tcc.proof","format_version":"9"}\n')
    assert tcc_command("check", proof, "--artifact", artifact).code == 2


@pytest.mark.parametrize("kind", ["number 0 .. 20", "integer 0 .. 2000", "number 7 .. 20.5"])
def test_a_sum_over_values_that_are_keys_is_an_interval_where_they_are_many(kind: str) -> None:
    text = SHOP.replace("number 0 .. 20", kind) + "limit uses(refund) per amount <= 1\n"
    found, artifacts = asked(text, finishable=True)
    assert found.proved and found.certificate is not None
    assert code_of(found.certificate, artifacts) == "VALID"
    lines = lines_of(found.certificate)
    # Of a value that is known to be somewhere in an interval none may be chosen.
    size = lines[0]["states"]
    for state in lines[1 : size + 1]:
        if state[3][0][1]:
            state[3][0][1] -= 1
            break
    assert code_of(file_of(lines), artifacts) == "T206"


def test_a_value_that_is_held_is_not_the_least_on_the_way_to_an_end() -> None:
    """An amount that was asked for is paid as it is, whatever is left of the sum."""
    text = """grammar g version "1"
tool ask(; amount: integer 0 .. 200)
tool pay(; amount: integer 0 .. 200)
plan = ask pay
require ask before pay same amount
limit sum(pay.amount) <= 100
"""
    found, _ = asked(text, finishable=True)
    assert (found.verdict, found.codes) == ("undecided", ("P504",))
    few, artifacts = asked(text.replace("200", "20").replace("100", "10"), finishable=True)
    assert few.verdict == "refuted" and few.certificate is not None
    assert code_of(few.certificate, artifacts) == "VALID"


@pytest.mark.parametrize("seed", range(4))
def test_few_values_as_intervals_are_never_wrong(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(compared_sides, "MAX_ALONE", -1)
    monkeypatch.setattr(system, "MAX_ALONE", -1)
    for at in range(8 * seed, 8 * seed + 8):
        every_certificate(at, {})


@pytest.mark.parametrize("kind", ["number", "number -5 .. 20", "text max 4"])
def test_what_the_other_side_adds_up_has_a_range_from_0(kind: str) -> None:
    other = tcc.compile_text(SHOP)
    free = SHOP.replace("limit sum(refund.amount) <= 50\n", "")
    mine = tcc.compile_text(free.replace("number 0 .. 20", kind))
    with pytest.raises(Rejected) as refusal:
        certificate.ProvedQuestion(kind="implies", text=None, artifacts=(mine, other)).system()
    assert (refusal.value.code.value, refusal.value.path) == ("D101", "amount")


@pytest.mark.parametrize(
    ("mine", "theirs", "path"),
    [
        # What is listed here and added up there is in no sum of the left.
        ("tool a(n: 1 | 2)", "tool a(; n: integer 1 .. 2)", "n"),
        ("tool a gives (s: ok | bad)", "tool a gives (t: ok | bad)", "a"),
        ("tool a(; x: json)", "tool a(x: p | q)", "x"),
    ],
)
def test_sides_that_differ_in_what_is_not_known_are_declined(
    mine: str, theirs: str, path: str
) -> None:
    limit = "limit sum(a.n) <= 1\n" if path == "n" else ""
    artifacts = tuple(
        [
            tcc.compile_text(f'grammar g version "1"\n{tool}\nplan = a a\n{say}')
            for tool, say in ((mine, ""), (theirs, limit))
        ]
    )
    with pytest.raises(Rejected) as refusal:
        certificate.ProvedQuestion(kind="implies", text=None, artifacts=artifacts).system()
    assert (refusal.value.code.value, refusal.value.path) == ("D101", path)


def test_plans_that_are_left_aside_let_more_through() -> None:
    """A monitor alone implies another, whatever plans are; a plan that implies it is needed."""
    found, artifacts = asked(SHOP, STATEMENT)
    assert found.certificate is not None
    lines = lines_of(found.certificate)
    assert [part.get("plans") for part in lines[0]["parts"]] == [None, False]
    forged = changed_at(lines, lambda copy: copy[0]["parts"][0].update(plans=False))
    assert code_of(forged, artifacts) == "T209"
    for value in (True, 0, "none"):
        forged = changed_at(lines, lambda copy, v=value: copy[0]["parts"][1].update(plans=v))
        assert code_of(forged, artifacts) == "T101"
    forged = changed_at(lines, lambda copy: copy[0]["parts"][1].pop("plans"))
    assert code_of(forged, artifacts) == "T201"

    text = SHOP.replace("(find | refund){0,3}", "refund find")
    text = text.replace("require find before refund same order\n", "")
    found, artifacts = asked(text, "never find before refund same order")
    assert found.proved and found.certificate is not None
    lines = lines_of(found.certificate)
    assert [part.get("plans") for part in lines[0]["parts"]] == [None, None]
    artifact = tcc.compile_text(text)
    of = certificate.ProvedQuestion(
        kind="statement", text="never find before refund same order", artifacts=(artifact,)
    )
    made = of.system()
    part = made.parts(frozenset(), unwalked=frozenset({1}))[1]
    assert certificate.closed(made, part, max_states=99, check_time=lambda: None) is None


COSTS = """grammar costs version "1"
tool find(k: 1 | 3) { cost 0.25 * k
  price 2 * k
  latency 100 ms
  epsilon 0.5
}
tool ask(; who: text max 9) { cost 0.5
  price 5
  latency 2 s
  epsilon 0
}
plan = (find | ask){0,3}
limit uses(ask) <= 1
"""


@pytest.mark.parametrize(
    ("kind", "most", "below"),
    [
        ("cost", "2.25", "2.249999999"),  # three of find(k=3)
        ("price", "18", "17"),
        ("latency", "2.2 s", "2199 ms"),
        ("epsilon", "1.5", "1.499999999"),
        ("depth", "3", "2"),
    ],
)
def test_limits_on_what_calls_take_are_proved_and_refuted(kind: str, most: str, below: str) -> None:
    found, artifacts = asked(COSTS, f"limit {kind} <= {most}")
    assert found.proved and found.certificate is not None
    assert code_of(found.certificate, artifacts) == "VALID"
    lines = lines_of(found.certificate)
    ask(lines, f"limit {kind} <= {below}")
    assert code_of(file_of(lines), artifacts) == "T207"
    found, artifacts = asked(COSTS, f"limit {kind} <= {below}")
    assert found.verdict == "refuted" and found.certificate is not None
    assert found.session is not None and len(found.session.calls) == 3
    assert code_of(found.certificate, artifacts) == "VALID"
    lines = lines_of(found.certificate)
    ask(lines, f"limit {kind} <= {most}")
    assert code_of(file_of(lines), artifacts) == "T302"


@pytest.mark.parametrize("most", [0, 2, 7, 8])
def test_a_limit_on_costs_that_may_go_down_has_a_proof(most: int) -> None:
    """Of each beginning: a later call may cost less than 0, and that is too late."""
    costs = (
        "tool a { cost -1.5 }\ntool b { cost 2 }\ntool c(k: x | y) { cost 1  cost -3 when k = y }"
    )
    text = f'grammar costs version "1"\n{costs}\nplan = (a | b | c){{0,4}}\n'
    found, artifacts = asked(text, f"limit cost <= {most}")
    assert found.proved is (most == 8) and found.certificate is not None
    assert code_of(found.certificate, artifacts) == "VALID"


def at_bound(
    monkeypatch: pytest.MonkeyPatch, place: Any, name: str, ask_it: Callable[[], str]
) -> int:
    """The least value of a limit that lets it pass; one less is a limit that is met."""
    most = 1
    monkeypatch.setattr(place, name, most)
    while ask_it() == "D201":
        most += 1
        monkeypatch.setattr(place, name, most)
    return most


def test_limits_let_what_is_at_them_pass(
    whole: tuple[list[Any], list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, artifacts = whole
    data = file_of(lines)
    with monkeypatch.context() as patch:
        patch.setattr(check, "MAX_PROOF_BYTES", len(data))
        assert code_of(data, artifacts) == "VALID"
    size = lines[0]["parts"][0]["states"]
    with monkeypatch.context() as patch:
        patch.setattr(check, "MAX_PROOF_STATES", size)
        assert code_of(data, artifacts) == "VALID"
        patch.setattr(check, "MAX_PROOF_STATES", size - 1)
        assert code_of(data, artifacts) == "D201"

    # A file without states meets nothing but the calls of its start.
    artifact = tcc.compile_text(
        'grammar g version "1"\ntool a(; x: text ~ "p|q", y: text ~ "p|q")\nplan = a\n'
    )
    text = "limit uses(a) per x <= 1"
    of = certificate.ProvedQuestion(kind="statement", text=text, artifacts=(artifact,))

    def choices() -> str:
        try:
            made = of.system()
            part = Part(tracked=None, rule=None, uses=frozenset())
            list(made.moves(part, made.starts(part)[0]))
        except Rejected as refusal:
            return refusal.code.value
        return "fine"

    # Only x is compared, and of an atom that is not held one value stands for all.
    assert at_bound(monkeypatch, moves, "MAX_CHOICES", choices) == 1
    both = 'grammar g version "1"\ntool a(; x: text ~ "p|q", y: text ~ "p|q")\nplan = a a\n'
    of = certificate.ProvedQuestion(
        kind="statement",
        text="forbid a before a same x = y",
        artifacts=(tcc.compile_text(both),),
    )
    assert at_bound(monkeypatch, moves, "MAX_CHOICES", choices) == 2  # equal, or not
    assert at_bound(monkeypatch, moves, "MAX_TRIED", choices) == 2


def test_lists_for_keys_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    one = 'grammar g version "1"\ntool a(; x: text)\nplan = a\nlimit uses(a) per x <= 1\n'
    two = one + "forbid a before a same x\n"

    def system_of(text: str) -> moves.System:
        mine = (tcc.compile_text(one), tcc.compile_text(text))
        return certificate.ProvedQuestion(kind="implies", text=None, artifacts=mine).system()

    for text, most in ((one, 2), (two, 3)):
        made = system_of(text)
        monkeypatch.setattr(parts, "MAX_PARTS", most)
        assert len(made.parts(frozenset())) == most
        monkeypatch.setattr(parts, "MAX_PARTS", most - 1)
        with pytest.raises(Rejected) as refusal:
            made.parts(frozenset())
        assert refusal.value.code.value == "D201"
