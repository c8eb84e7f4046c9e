"""Forms of proofs and of their questions: what each check of the kernel refuses, and where.

Each is made of a proof that is VALID, or asked of the kernel's own reader, and has its own code,
place and expectation: so a check that is missing is seen, though another one refuses the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc_certs.core.model import Core
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.proof import check, compared, moves, parts, question
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.compared import Part
from tcc_certs.proof.question import statement_core
from tcc_certs.proof.replay import Replay
from tcc_certs.proof.sides import statement_side
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.exact import certificate

TOOLS = """grammar g version "1"

tool a(k?: p | q, x: text max 9, n: number 0 .. 9, m: number -1 .. 9, o?: number 0 .. 9,
       z?: text max 9, j: json, f: flag) gives (s: ok | bad)
tool b(k: p | q, v: 1 | 2, w: -1 | 1, x: text max 9, y: text max 9)

plan = a b
"""


@cache
def compiled(text: str) -> Artifact:
    return tcc.compile_text(text)


@pytest.fixture(scope="module")
def core() -> Core:
    return compiled(TOOLS).core


SETS = "any" + " | any" * 99
QUESTIONS = [
    ("forbid a b same x", "a tool"),
    ("forbid a a before b", "the end of the statement"),
    ("forbid a before b extra", "the end of the statement"),
    ("allow a", "never or forbid or require or limit"),
    ("forbid a before 3", "a name"),
    ("forbid a | any before b same x", "one pattern beside same or per"),
    ("forbid any before b same x", "a tool"),
    ("forbid c", "a tool"),
    ("forbid b(v = 3)", "a value of v"),
    ('forbid a(k = "")', "a value of k"),
    ("forbid b(v = - p)", "a value"),
    ("forbid b(v = <=)", "a value"),
    ('forbid b(k = - "p")', "a value"),
    ("forbid b(x = p)", "a listed parameter, once"),
    ("forbid b(v = 1, v = 1)", "a listed parameter, once"),
    ("forbid b(v = 1", ")"),
    ("require a before b same k", "parameters that can be compared"),
    ("require a before b same j = x", "parameters that can be compared"),
    ("require a before b same f = x", "parameters that can be compared"),
    ("require a before b same s = k", "parameters that can be compared"),
    ("require a before b same z = x", "parameters that can be compared"),
    ("require a before b same j = j", "parameters that can be compared"),
    ("require b before b same k", "a pair of open parameters"),
    ("require b before a(s = ok) same x", "what its caller chooses"),
    ("forbid a(s = ok) with b same x", "what its caller chooses"),
    ("require b after a same x", "before"),
    ("limit uses(a) per k <= 1", "an open parameter of every call"),
    ("limit uses(a) per z <= 1", "an open parameter of every call"),
    ("limit uses(a) per x <= 1.5", "a whole number"),
    ("limit uses(a) per x <= p", "a whole number"),
    ("limit uses(a) per x <= " + "9" * 19, "a whole number"),
    ("limit uses(a) per x >= 1", "<="),
    ("limit sum(a.x) <= 1", "a number of at least 0"),
    ("limit sum(a.m) <= 1", "a number of at least 0"),
    ("limit sum(a.o) <= 1", "a number of at least 0"),
    ("limit sum(b.w) <= 1", "numbers of at least 0"),
    ("limit sum(b.k) <= 1", "numbers of at least 0"),
    ("limit sum(b.v) <= 0.1234567891", "nine decimals"),
    ("limit sum(b.nothing) <= 1", "a parameter of b"),
    ("limit sum(a.n) <= x", "a number"),
    ("limit sum(a.n) <= " + "1" * 61, "a number"),
    ("limit price <= x", "a number"),
    ("limit price <= 1." + "0" * 59, "a number"),
    ("limit price <= 0.5", "a whole number of units"),
    ("limit price <= 9223372036854775808", "a whole number of units"),
    ("limit latency <= 3", "ms or s"),
]


@pytest.mark.parametrize(("text", "expected"), QUESTIONS, ids=[one[0][:40] for one in QUESTIONS])
def test_what_is_no_question_has_its_reason(core: Core, text: str, expected: str) -> None:
    with pytest.raises(Rejected) as refusal:
        statement_core(core, "statement", text)
    assert (refusal.value.code.value, refusal.value.path) == ("T102", "question")
    assert refusal.value.expected == expected


@pytest.mark.parametrize("text", ["a b", "a with b", "a same x"])
def test_what_is_reachable_is_one_pattern(core: Core, text: str) -> None:
    with pytest.raises(Rejected) as refusal:
        statement_core(core, "reachable", text)
    assert refusal.value.code.value == "T102"


def test_questions_at_their_bounds_are_read(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in (
        "limit uses(a) per x <= " + "9" * 18,
        "limit price <= 9223372036854775807",
        "limit price <= 1." + "0" * 58,
        "limit sum(a.n) <= " + "1" * 60,
        "limit sum(b.v) <= 0.123456789",
        "forbid " + "(" * 100 + "a" + ")" * 100,
        "forbid b(w = - 1)",
        "forbid b(w = + 1)",
        'forbid b(k = "p")',
        "limit depth <=" + " " * ((1 << 16) - 15) + "3" + " " * 9,
    ):
        assert statement_core(core, "statement", text).tools == core.tools
    for text, code in (
        ("forbid " + "(" * 101 + "a" + ")" * 101, "D201"),
        ("limit depth <=" + " " * ((1 << 16) - 14) + "3", "D201"),
        ("limit cost <= 3", "fine"),
    ):
        assert read(core, text) == code
    calls = len(core.calls)
    monkeypatch.setattr(question, "MAX_NAMED", 100 * calls)
    assert read(core, f"forbid {SETS}") == "fine"
    assert read(core, f"forbid {SETS} | any") == "D201"


def read(core: Core, text: str) -> str:
    try:
        statement_core(core, "statement", text)
    except Rejected as refusal:
        return refusal.code.value
    return "fine"


# The first line, and the lines behind it.

SHOP = """grammar shop version "1"

tool find(order: text ~ "p|q", user: text ~ "q|r")
tool refund(part?: half | full, order: text ~ "p|q", amount: number 0 .. 20, sure: flag)

plan = (find | refund){0,3}

before refund require find(same order)
limit sum(refund.amount) <= 50
"""
STATEMENT = "require find before refund same order"
Lines = list[Any]
Change = Callable[[Lines], object]


class Made:
    """A proof that is VALID, as lines, and what it is about."""

    def __init__(self, data: bytes | None, artifacts: list[bytes]) -> None:
        assert data is not None
        self.data, self.artifacts = data, artifacts
        assert self.verdict(lambda lines: None) == ("VALID", "")

    def verdict(self, change: Change) -> tuple[str, str]:
        """The code and the place of the proof, changed."""
        lines = [json.loads(line) for line in self.data.splitlines()]
        change(lines)
        data = b"".join(encode(line) + b"\n" for line in lines)
        found = check_proof(data, self.artifacts).finding
        return ("VALID", "") if found is None else (found.code.value, found.path)


@cache
def made(text: str, statement: str | None = None, **more: Any) -> Made:
    artifact = compiled(text)
    artifacts = [artifact_bytes(artifact)]
    if "implies" in more:
        artifacts.append(artifacts[0])
        more["implies"] = artifact
    return Made(tcc.prove(artifact, statement, **more).certificate, artifacts)


@pytest.fixture(scope="module")
def keyed() -> Made:
    return made(SHOP, STATEMENT)


@pytest.fixture(scope="module")
def implied() -> Made:
    return made(SHOP, implies=True)


@pytest.fixture(scope="module")
def finished() -> Made:
    return made(SHOP.replace("{0,3}", "{1,3}"), finishable=True)


@pytest.fixture(scope="module")
def stuck() -> Made:
    text = SHOP.replace("(find | refund){0,3}", "find refund refund").replace("0 .. 20", "20 .. 40")
    return made(text, finishable=True)


@pytest.fixture(scope="module")
def session() -> Made:
    return made(SHOP, "never refund(part=full)")


@pytest.fixture(scope="module")
def owed() -> Made:
    """A session that ends where something is owed."""
    return made(SHOP, "limit uses(refund) >= 1")


@pytest.fixture(scope="module")
def whole() -> Made:
    """One list of all values, as the kernel reads it."""
    return made_whole()


@pytest.fixture(scope="module")
def counted() -> Made:
    """The same, where the right side's places are told apart."""
    return made_whole("limit uses(find) <= 3")


@cache
def made_whole(text: str = STATEMENT) -> Made:
    """See :func:`whole`."""
    artifact = compiled(SHOP)
    of = certificate.ProvedQuestion(kind="statement", text=text, artifacts=(artifact,))
    found = certificate.by_all(of.system(), max_states=10**5, check_time=lambda: None)
    assert found is not None
    return Made(found.certificate(of, "proved"), [artifact_bytes(artifact)])


def head(**more: object) -> Change:
    return lambda lines: lines[0].update(more)


def asks(**more: object) -> Change:
    return lambda lines: lines[0]["question"].update(more)


def part(number: int, **more: object) -> Change:
    return lambda lines: lines[0]["parts"][number].update(more)


def line(number: int, *place: int, to: Any) -> Change:
    def change(lines: Lines) -> None:
        found = lines[number]
        for at in place[:-1]:
            found = found[at]
        found[place[-1]] = to(found[place[-1]]) if callable(to) else to

    return change


def size_of(lines: Lines) -> int:
    return int(lines[0]["parts"][0]["states"])


def start(row: list[Any] | None) -> Change:
    """Where the start is; None: one behind the last state."""

    def change(lines: Lines) -> None:
        lines[1 + size_of(lines)] = [size_of(lines)] if row is None else row

    return change


def greater_least(lines: Lines) -> None:
    """Of the last state with an interval the least sum is greater, as if none were least."""
    for state in reversed(lines[1 : 1 + size_of(lines)]):
        if state[3][0][1]:
            state[3][0][0] += 1
            return


def lesser_most(lines: Lines) -> None:
    for state in reversed(lines[1 : 1 + size_of(lines)]):
        if state[3][0][1]:
            state[3][0][1] -= 1
            return


def first_way(lines: Lines) -> Any:
    """The first line of ends that has a call: the call's number, and where it leads."""
    first = 3 + 2 * lines[0]["states"]
    return next(one for one in lines[first::2] if one)


def later_end(lines: Lines) -> None:
    first_way(lines)[1][0] = lines[0]["ends"] - 1


def other_call(lines: Lines) -> None:
    first_way(lines)[0] = 99


def first_is_second(lines: Lines) -> None:
    lines[1] = lines[2]


FORMS: list[tuple[str, str, Change, str, str]] = [
    ("keyed", "a question of another kind", asks(kind="why"), "T101", "question.kind"),
    ("keyed", "a kind that is a list", asks(kind=["implies"]), "T101", "question.kind"),
    ("keyed", "a question with more", asks(more="x"), "T101", "question"),
    ("keyed", "no text", lambda lines: lines[0]["question"].pop("text"), "T101", "question"),
    ("implied", "a text where none is asked", asks(text="x"), "T101", "question"),
    ("keyed", "neither proved nor refuted", head(proof="open"), "T101", "proof"),
    ("keyed", "another format", head(format="tcc.session"), "T101", "format"),
    ("keyed", "a member more", head(more=1), "T101", "line 1"),
    ("session", "a member more in a session", head(more=1), "T101", "line 1"),
    ("finished", "a member more of ends", head(calls=1), "T101", "line 1"),
    ("stuck", "a member more of what is stuck", head(ends=1), "T101", "line 1"),
    ("keyed", "a part with more", part(1, more=1), "T101", "parts[1]"),
    ("keyed", "plans that are 0", part(1, plans=0), "T101", "parts[1].plans"),
    ("keyed", "no plans in the first part", part(0, plans=False), "T209", "parts[0].plans"),
    ("keyed", "other keys", part(1, keys="all"), "T209", "parts"),
    ("keyed", "no such monitor", part(1, uses=[2]), "T209", "parts[1].uses"),
    ("keyed", "a number of states that is a text", part(0, states="1"), "T101", "parts[0].states"),
    ("keyed", "a number of states that is true", part(0, states=True), "T101", "parts[0].states"),
    ("keyed", "a number of states below 0", part(0, states=-1), "T101", "parts[0].states"),
    ("session", "ends in another way", head(ends="stuck"), "T101", "ends"),
    ("session", "the value of none", line(2, 1, to=[["part", ""]]), "T301", "part"),
    ("session", "no parameter", line(1, 2, to=[["nothing", "p"]]), "T301", "nothing"),
    ("session", "no listed parameter", line(1, 1, to=[["nothing", "p"]]), "T301", "nothing"),
    ("session", "another listed value", line(2, 1, to=[["part", "x"]]), "T301", "part"),
    ("session", "no number", line(2, 2, 0, 1, to="1e1"), "T301", "value"),
    ("session", "a number of another type", line(2, 2, 0, 1, to="21"), "T301", "value"),
    ("session", "no flag", line(2, 2, 2, 1, to="maybe"), "T301", "value"),
    ("session", "a tool that is none", line(2, 0, to="nobody"), "T301", "calls"),
    ("session", "names that fall", line(2, 2, to=lambda v: v[::-1]), "T101", "line 3[1]"),
    ("session", "nothing shown", head(ends="finish"), "T302", "call 2"),
    ("owed", "nothing that is owed", asks(text="limit uses(refund) >= 0"), "T302", "end"),
    ("stuck", "a call before its time", first_is_second, "T301", "call 1"),
    ("counted", "another tally", line(2, 1, to=[[], [[0, 2]]]), "T203", "*"),
    ("whole", "another place of the left", line(2, 0, to=[[0], []]), "T203", "*"),
    ("whole", "another place of the right", line(2, 1, to=[[], [[0, 1]]]), "T101", "line 3"),
    ("whole", "other facts", line(2, 2, to=[]), "T203", "*"),
    ("whole", "a text for a token", line(2, 2, 0, 2, to=["p"]), "T101", "line 3"),
    ("whole", "a token that is true", line(2, 2, 0, 2, to=[True]), "T101", "line 3"),
    ("whole", "a token below 0", line(2, 2, 0, 2, to=[-1]), "T101", "line 3"),
    ("whole", "a key of more parts", line(2, 2, 0, 2, to=[0, 0]), "T101", "line 3 parts"),
    ("whole", "no such slot", line(2, 2, 0, 1, to=9), "T101", "line 3"),
    ("whole", "no such side", line(2, 2, 0, 0, to=2), "T101", "line 3"),
    ("whole", "a sum that begins later", greater_least, "T206", "*"),
    ("whole", "a sum that ends before", lesser_most, "T206", "*"),
    ("whole", "no start", start([]), "T201", "*"),
    ("whole", "a start behind the list", start(None), "T201", "*"),
    ("whole", "a start that is no number", start([True]), "T101", "*"),
    ("whole", "a start below 0", start([-1]), "T101", "*"),
    ("whole", "a start with a token", start([0, 0]), "T204", "*"),
    ("whole", "a line more", lambda lines: lines.append([]), "T101", "*"),
    ("whole", "a line less", lambda lines: lines.pop(), "T101", "*"),
    ("finished", "an end less", lambda lines: lines[-1].pop(), "T401", "*"),
    ("finished", "a step to an end that is not there yet", later_end, "T401", "*"),
    ("finished", "a call that is not there", other_call, "T401", "*"),
]


@pytest.mark.parametrize(
    ("proof", "name", "change", "code", "path"), FORMS, ids=[f"{one[0]}: {one[1]}" for one in FORMS]
)
def test_a_form_that_is_none_has_its_code_and_place(
    request: pytest.FixtureRequest, proof: str, name: str, change: Change, code: str, path: str
) -> None:
    found = request.getfixturevalue(proof).verdict(change)
    assert found[0] == code and path in ("*", found[1]), name


def test_limits_of_lines_and_states_are_met_at_their_bounds(
    keyed: Made, finished: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = max(map(len, keyed.data.splitlines()))
    states = sum(one["states"] for one in json.loads(keyed.data.splitlines()[0])["parts"])
    for least, name, proof in (
        (len(keyed.data), "MAX_PROOF_BYTES", keyed),
        (longest, "MAX_LINE_BYTES", keyed),
        (states, "MAX_PROOF_STATES", keyed),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(check, name, least)
            assert proof.verdict(lambda lines: None)[0] == "VALID"
            patch.setattr(check, name, least - 1)
            assert proof.verdict(lambda lines: None)[0] == "D201"
    told = json.loads(finished.data.splitlines()[0])
    for member in ("states", "ends"):
        with monkeypatch.context() as patch:
            patch.setattr(check, "MAX_PROOF_STATES", max(told["states"], told["ends"]))
            assert finished.verdict(lambda lines: None)[0] == "VALID"
            patch.setattr(check, "MAX_PROOF_STATES", told[member] - 1)
            found = finished.verdict(head(**{"states" if member == "ends" else "ends": 0}))
            assert found == ("D201", member)


def test_bytes_that_are_no_lines_are_refused(keyed: Made) -> None:
    for data, code, path in (
        (keyed.data[:-1], "T101", "proof"),
        (b"[]\n", "T101", "line 1"),
        (b"\n", "B101", "line 1"),
        (keyed.data.splitlines()[0] + b"\n", "T101", "line 2"),
        (keyed.data.replace(b"tcc.proof", b'tcc.proof" ', 1), "B101", "line 1"),
    ):
        found = check_proof(data, keyed.artifacts).finding
        assert found is not None and (found.code.value, found.path) == (code, path)


ARTIFACT = compiled(SHOP)


def test_json_is_compared_with_nothing() -> None:
    """The other side lists what is JSON here: the kernel does not know how many values it has."""
    mine = compiled("""grammar g version "1"

tool a(x: json)

plan = a
""")
    theirs = compiled("""grammar g version "1"

tool a(x: p | q)

plan = a
""")
    with pytest.raises(Rejected) as refusal:
        certificate.ProvedQuestion(kind="implies", text=None, artifacts=(mine, theirs)).system()
    assert (refusal.value.code.value, refusal.value.path) == ("D101", "x")


def test_keys_are_counted_at_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one monitor there are as many lists as its values may be equal or not."""
    text = "forbid find before find same order, user = order"
    artifact = compiled(SHOP)
    made_of = certificate.ProvedQuestion(
        kind="statement", text=text, artifacts=(artifact,)
    ).system()
    most = len(made_of.parts(frozenset()))
    assert most > 3
    monkeypatch.setattr(parts, "MAX_PARTS", most)
    assert len(made_of.parts(frozenset())) == most
    monkeypatch.setattr(parts, "MAX_PARTS", most - 1)
    with pytest.raises(Rejected) as refusal:
        made_of.parts(frozenset())
    assert (refusal.value.code.value, refusal.value.path) == ("D201", "keys")


def test_many_values_of_a_field_are_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    text = SHOP.replace("number 0 .. 20", "integer 0 .. 20")
    text += "limit uses(refund) per amount <= 1\n"
    of = certificate.ProvedQuestion(kind="finishable", text=None, artifacts=(compiled(text),))
    monkeypatch.setattr(compared, "MAX_ALONE", 20)
    assert sum(atom.sort == "number" for atom in of.system().atoms) == 21
    monkeypatch.setattr(compared, "MAX_ALONE", 19)
    assert sum(atom.sort == "number" for atom in of.system().atoms) == 1
    assert Part(tracked=None, rule=None, uses=frozenset()).plans


def test_what_the_kernel_does_not_know_is_declined_by_itself() -> None:
    core = compiled(f"{SHOP}tool work {{ parallel\n}}\n").core
    with pytest.raises(Rejected) as refusal:
        statement_side(core)
    assert (refusal.value.code.value, refusal.value.expected) == ("D101", "fields that are covered")


def beside_itself(text: str) -> certificate.ProvedQuestion:
    return certificate.ProvedQuestion(kind="implies", text=None, artifacts=(compiled(text),) * 2)


def test_statements_of_later_versions_have_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are as short as what is remembered; each value that is computed with is an atom."""
    text = """grammar g version "1"

tool ask(id: text max 9, amount: integer 0 .. 9)
tool pay(id: text max 9, amount: integer 0 .. 9)

plan = (ask | pay){0,3}

before pay require ask(same id, amount + 1 >= this.amount)
"""
    assert beside_itself(text).system().atoms
    with pytest.raises(Rejected) as refusal:
        beside_itself(text.replace("0 .. 9", "0 .. 999")).system()
    found = refusal.value.code.value, refusal.value.path, refusal.value.expected
    assert found == ("D101", "amount", "few whole numbers")
    made_of = beside_itself(text).system()
    monkeypatch.setattr(compared, "MOST_KEPT", 3)
    assert beside_itself(text).system().atoms
    monkeypatch.setattr(compared, "MOST_KEPT", 2)
    with pytest.raises(Rejected) as refusal:
        beside_itself(text).system()
    assert (refusal.value.code.value, refusal.value.expected) == ("D101", "plans of 2")
    with pytest.raises(Rejected) as refusal:
        made_of.parts(frozenset())
    assert (refusal.value.code.value, refusal.value.path) == ("D101", "parts")
    whole_part = Part(tracked=None, rule=None, uses=frozenset({0}))
    first = next(move.state for move in made_of.moves(whole_part, made_of.starts(whole_part)[0]))
    assert first is not None
    over = (((), ()), *first[1:])  # no plan goes on, and something is remembered
    tried = made_of._tried
    monkeypatch.setattr(moves, "MAX_TRIED", tried + 1)
    assert not list(made_of.moves(whole_part, over))
    with pytest.raises(Rejected) as refusal:
        list(made_of.moves(whole_part, over))
    assert refusal.value.code.value == "D201"


def test_a_statement_of_a_later_version_has_its_own_text() -> None:
    statement = "require find same order or find same order before refund"
    proof = made(SHOP, statement)
    assert "policy" in json.loads(proof.data.splitlines()[0])["question"]
    for text in (STATEMENT, statement + " ", statement.upper()):
        assert proof.verdict(asks(text=text)) == ("T102", "question.text")


def test_spans_and_orders_that_are_not_covered_are_declined() -> None:
    timed = compiled(SHOP + "limit uses(refund) <= 2 within 1 h\n")
    of = certificate.ProvedQuestion(kind="finishable", text=None, artifacts=(timed,)).system()
    with pytest.raises(Rejected) as refusal:
        Replay(of.left, of.left).state(of)
    assert (refusal.value.code.value, refusal.value.expected) == ("D101", "no spans of time")
    ordered = """grammar g version "1"

tool ask(id: text max 9, amount: number 0 .. 9)
tool pay(id: text max 9)

plan = (ask | pay){0,3}

before pay require ask(same id, amount >= 5)
"""
    assert beside_itself(ordered).system().atoms
    with pytest.raises(Rejected) as refusal:
        beside_itself(ordered.replace("number 0 .. 9", "number")).system()
    assert refusal.value.found == "an order of numbers without a range"


def test_a_remembered_call_has_a_token_or_a_listed_value() -> None:
    """A listed value is told by its text alone, and an open one by a token."""
    statement = 'require last find same order where seen.kind = "p" before refund'
    text = SHOP.replace("order: text ~", "kind: p | q; order: text ~", 1).replace(
        "(; kind", "(kind"
    )
    proof = made(text.replace("require find before refund same order", statement), statement)
    lines = [json.loads(one) for one in proof.data.splitlines()]
    states = lines[0]["parts"][0]["states"]
    at = next(i for i in range(1, 1 + states) if lines[i][2] and lines[i][2][0][2][:1] == ["p"])
    for key in ([0, 0], ["x", 0], ["p", "x"], ["p", True], ["p"]):
        code, path = proof.verdict(line(at, 2, 0, 2, to=key))
        assert (code, path.split()[:2]) == ("T101", ["line", str(at + 1)]), key
