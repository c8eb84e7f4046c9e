"""Exact questions about grammars of language 1.2: what is left aside, and what is not decided."""

from __future__ import annotations

from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes, artifact_of
from tcc_certs.errors import Rejected
from tcc_certs.proof.check import check_proof
from tcc_runtime.exact import certificate, search
from tests.exact import brute, test_brute
from tests.exact.test_proofs import changed_at, code_of, file_of, lines_of

SHOP = """grammar g version "1"

tool find(order: text max 9)
tool approve(order: text max 9)
tool refund(order: text max 9, amount: integer 0 .. 20)

plan = (find | approve | refund){0,3}

before refund require find(same order) or approve(same order)
limit sum(refund.amount) <= 50
before find require no approve(same order)
"""
ALTERNATIVES = "require find same order or approve same order before refund"
TIMED = SHOP + "limit uses(refund) <= 2 within 1 h\n"
LONGER = SHOP.replace("{0,3}", "{0,4}")
LIMIT = "limit uses(refund) <= 2 within 1 h\n"
OTHER = SHOP.replace("find same order or approve same order", "approve same order or find")
LAST = SHOP.replace("limit sum", "require last find same order before approve\nlimit sum")
UNLESS = SHOP.replace(
    "require find same order or approve same order before refund",
    "forbid find same order before refund unless approve same order",
)


@pytest.mark.parametrize(
    ("text", "asked", "verdict", "codes", "calls"),
    [
        (SHOP, {"statement": "limit sum(refund.amount) <= 50"}, "proved", (), None),
        (SHOP, {"statement": "never approve before find same order"}, "proved", (), None),
        (SHOP, {"statement": "never refund"}, "refuted", (), 2),
        (SHOP, {"statement": "never find"}, "refuted", (), 1),
        (SHOP, {"reachable": "refund"}, "proved", (), 2),
        (UNLESS, {"statement": "never refund after find same order"}, "refuted", (), 3),
        (SHOP, {"finishable": True}, "proved", (), None),
        (SHOP, {"implies": SHOP}, "proved", (), None),
        (SHOP, {"implies": SHOP.replace("<= 50", "<= 60")}, "proved", (), None),
        (SHOP, {"implies": SHOP.replace("<= 50", "<= 15")}, "refuted", (), 2),
        (SHOP, {"implies": OTHER}, "proved", (), None),
        (OTHER, {"implies": SHOP}, "refuted", (), 2),
        (TIMED, {"implies": SHOP}, "proved", (), None),
        (SHOP, {"implies": TIMED}, "proved", (), None),
        (LONGER, {"implies": LONGER + LIMIT}, "refuted", (), 4),
        (LONGER + LIMIT, {"statement": "limit uses(refund) <= 2 within 30 m"}, "proved", (), None),
        (LONGER + LIMIT, {"statement": "limit uses(refund) <= 2 within 2 h"}, "refuted", (), 4),
        (LONGER + LIMIT, {"statement": "limit uses(refund) <= 2"}, "refuted", (), 4),
        (TIMED, {"finishable": True}, "proved", (), None),
        (LAST, {"implies": SHOP}, "proved", (), None),
        (SHOP, {"statement": ALTERNATIVES}, "proved", (), None),
        (
            LAST,
            {"statement": "require find same order or find same order before approve"},
            "proved",
            (),
            None,
        ),
    ],
)
def test_statements_of_language_1_2_are_decided(
    text: str, asked: dict[str, Any], verdict: str, codes: tuple[str, ...], calls: int | None
) -> None:
    artifacts = [tcc.compile_text(text)]
    if "implies" in asked:
        asked = {"implies": tcc.compile_text(asked["implies"])}
        artifacts.append(asked["implies"])
    found = tcc.prove(artifacts[0], **asked)
    shown = None if found.session is None else len(found.session.calls)
    assert (found.verdict, found.codes, shown) == (verdict, codes, calls), found.whys
    data = found.certificate
    assert data is not None
    report = check_proof(data, [artifact_bytes(one) for one in artifacts])
    assert (report.verdict, report.proof) == (0, verdict), report.finding


@pytest.mark.parametrize(
    "statement", ["require a where seen.k = x before b", "require a same k = x before b"]
)
def test_an_open_value_may_be_one_that_another_field_lists(statement: str) -> None:
    head = """grammar g version "1"

tool a(k: m | n)
tool b(x: text max 9)
"""
    artifact = tcc.compile_text(f"{head}limit depth <= 2\n{statement}\n")
    found = tcc.prove(artifact, "never b")
    assert (found.verdict, len(found.session.calls if found.session else ())) == ("refuted", 2)
    assert tcc.prove(artifact, reachable="b").proved
    assert found.certificate is not None
    assert check_proof(found.certificate, [artifact_bytes(artifact)]).verdict == 0


def test_a_proof_over_statements_that_the_core_has_not_is_another_one() -> None:
    """A session of the grammar without a statement is none of the one with it."""
    plain, later = (tcc.compile_text(SHOP.replace(f"{ALTERNATIVES}\n", "")), tcc.compile_text(SHOP))
    for asked in ({"statement": "never refund"}, {"finishable": True}):
        found = tcc.prove(plain, **asked)
        assert found.certificate is not None
        head, _, rest = found.certificate.partition(b"\n")
        of, digest = (certificate.core_digest(one.file).encode() for one in (plain, later))
        report = check_proof(head.replace(of, digest) + b"\n" + rest, [artifact_bytes(later)])
        assert report.finding is not None
        assert report.verdict == 1 and report.finding.code.value in ("T101", "T202", "T203", "T301")


def test_what_the_other_side_holds_is_forgotten_only_if_it_is_the_same() -> None:
    """The same words about other tools say something else, and no key is asked about alone."""
    mine = tcc.compile_text(SHOP)
    for text in (OTHER, SHOP.replace("tool find(; order: text max 9)", "tool find(; order: text)")):
        of = certificate.ProvedQuestion(
            kind="implies", text=None, artifacts=(mine, tcc.compile_text(text))
        )
        with pytest.raises(Rejected) as refusal:
            of.system(listed=True, bare=True).parts(frozenset())
        assert refusal.value.code.value == "D101"


def test_a_session_has_times_where_a_statement_has_a_span() -> None:
    late = SHOP.replace("before refund\n", "before refund\nforbid find within 1 h before refund\n")
    found = tcc.prove(tcc.compile_text(late), "never refund after find same order")
    assert found.verdict == "refuted" and found.session is not None
    assert [call.at_ms for call in found.session.calls] == [0, 3_600_001]


def in_alternatives(say: brute.Say) -> str:
    """A statement as language 1.2 has it: one alternative, said twice."""
    same = ", ".join(f"{x} = {y}" for x, y in say.same)
    either = f"{say.a} same {same} or {say.a} same {same}"
    match say.word:
        case "require" if same:
            return f"require {either} before {say.b}"
        case "each" if same:
            return f"require {either} before each {say.b}"
        case "before" if same:
            return f"forbid {either} before {say.b}"
    return PLAIN(say)


PLAIN = brute.Say.text.fget


@pytest.mark.parametrize("first", [0, 20, 40])
def test_what_is_decided_is_as_brute_force_says(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    """The same statements, told in the words of 1.2."""
    monkeypatch.setattr(brute.Say, "text", property(in_alternatives))
    tally: dict[str, int] = {}
    for seed in range(first, first + 20):
        for found, artifacts in test_brute.ask(seed, tally):
            data = found.certificate
            if data is not None:
                report = check_proof(data, [artifact_bytes(one) for one in artifacts])
                assert report.finding is None, (seed, found)
    assert tally["sessions shown"] > 10


# Forgeries.

HALF = "limit uses(refund) <= 2 within 30 m"
LINE = 3  # the side of the history that has spans, in a proof about one more that has none


def first_with(lines: list[Any], side: int) -> list[Any]:
    """The first fact of a side, and the facts that it stands among."""
    size = lines[0]["parts"][0]["states"]
    return next(state[2] for state in lines[1 : size + 1] if any(f[0] == side for f in state[2]))


def age(lines: list[Any], by: int) -> None:
    fact = next(one for one in first_with(lines, LINE) if one[0] == LINE)
    fact[3] += by


def forgotten(lines: list[Any], side: int) -> None:
    """No state has a call of a history."""
    size = lines[0]["parts"][0]["states"]
    for state in lines[1 : size + 1]:
        state[2] = [fact for fact in state[2] if fact[0] != side]


def one_forgotten(lines: list[Any], side: int) -> None:
    facts = first_with(lines, side)
    facts[:] = [fact for fact in facts if fact[0] != side]


def told(lines: list[Any], **more: Any) -> None:
    lines[0]["question"]["policy"].update(more)


def of_fact(lines: list[Any], place: int, value: Any) -> None:
    next(one for one in first_with(lines, LINE) if one[0] == LINE)[place] = value


LISTS = [
    ("an age more", lambda lines: age(lines, 1), {"T203"}),
    ("an age that there is not", lambda lines: age(lines, 3), {"T101", "T203"}),
    ("a call left out", lambda lines: one_forgotten(lines, LINE), {"T203"}),
    ("a history forgotten", lambda lines: forgotten(lines, LINE), {"T203"}),
    ("the left's history forgotten", lambda lines: forgotten(lines, 2), {"T203"}),
    ("a history that there is not", lambda lines: of_fact(lines, 0, 9), {"T101"}),
    ("a call of no tool", lambda lines: of_fact(lines, 3, 1 << 40), {"T101"}),
    ("a field more", lambda lines: of_fact(lines, 2, [0, 0]), {"T101"}),
    ("another place", lambda lines: of_fact(lines, 1, 5), {"T203"}),
    ("another span", lambda lines: told(lines, within=60_000), {"T102"}),
    ("another number", lambda lines: told(lines, value=9), {"T102"}),
    ("no policy", lambda lines: lines[0]["question"].pop("policy"), {"T102", "D101"}),
    ("other words", lambda lines: lines[0]["question"].update(text=LIMIT.strip()), {"T102"}),
    ("a kind of its own", lambda lines: told(lines, kind="never"), {"T102"}),
    ("monitors forgotten", lambda lines: lines[0]["parts"][0].update(uses=[]), {"T202", "T203"}),
]


@pytest.fixture(scope="module")
def listed() -> tuple[list[Any], list[bytes]]:
    artifact = tcc.compile_text(LONGER + LIMIT)
    found = tcc.prove(artifact, HALF)
    assert found.proved and found.certificate is not None
    return lines_of(found.certificate), [artifact_bytes(artifact)]


@pytest.mark.parametrize(("name", "change", "codes"), LISTS, ids=[one[0] for one in LISTS])
def test_a_forged_list_is_refused(
    listed: tuple[list[Any], list[bytes]], name: str, change: Any, codes: set[str]
) -> None:
    lines, artifacts = listed
    assert code_of(file_of(lines), artifacts) == "VALID"
    assert code_of(changed_at(lines, change), artifacts) in codes


TIMES = [
    ("a call too early", [0, 0, 1, 3_600_000], {"T301"}),
    ("all at once", [0, 0, 0, 0], {"T301"}),
    ("a time that goes back", [0, 5, 1, 3_600_006], {"T301"}),
    ("a time below 0", [-1, 0, 1, 3_600_001], {"T301", "T101"}),
    ("a time that is none", ["0", 0, 1, 3_600_001], {"T101"}),
]


@pytest.mark.parametrize(("name", "times", "codes"), TIMES, ids=[one[0] for one in TIMES])
def test_a_session_at_other_times_is_none(name: str, times: list[Any], codes: set[str]) -> None:
    artifact = tcc.compile_text(LONGER + LIMIT)
    found = tcc.prove(artifact, "limit uses(refund) <= 2")
    assert found.certificate is not None
    lines = lines_of(found.certificate)
    assert [line[3] for line in lines[1:]] == [0, 0, 1, 3_600_001]
    for line, at_ms in zip(lines[1:], times, strict=True):
        line[3] = at_ms
    assert code_of(file_of(lines), [artifact_bytes(artifact)]) in codes


def test_calls_have_times_exactly_where_a_statement_has_a_span() -> None:
    for text, due in ((SHOP, 3), (LONGER + LIMIT, 4)):
        artifact = tcc.compile_text(text)
        found = tcc.prove(artifact, "never refund")
        assert found.certificate is not None
        lines = lines_of(found.certificate)
        assert [len(line) for line in lines[1:]] == [due, due]
        for line in lines[1:]:
            line[3:] = [] if due == 4 else [0]
        assert code_of(file_of(lines), [artifact_bytes(artifact)]) == "T101"


LATER = """grammar g version "1"

given u: text

tool x(a: list of text, t: time "+02:00", d: date utc, r: list min 1 of (n?: integer 0 .. 4),
       z?: text or null) gives (s: ok | *, o: text at "/a/b")
tool y(k?: a | b, b: json, q: text at "/b/c")

plan = (x | y){0,3}

before y require x(o = this.q)
"""


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"reachable": "nope"}, "no tool is named 'nope'"),
        ({"reachable": "y(k=c)"}, "'c' is no value of 'k'"),
        ({"reachable": "y("}, "is not closed"),
        ({"statement": "never nope"}, "no tool is named 'nope'"),
        ({"statement": "require x where w = 1 before y"}, "has no field 'w'"),
    ],
)
def test_what_is_wrong_with_a_statement_is_said_first(asked: dict[str, str], said: str) -> None:
    """Whether it would be decided comes after that."""
    artifact = tcc.compile_text(LATER)
    with pytest.raises(tcc.CompileError) as refused:
        tcc.prove(artifact, **asked)
    assert said in str(refused.value)
    found = tcc.prove(artifact, reachable="y")
    assert (found.verdict, found.codes) == ("undecided", ("P501",))


def test_several_spans_are_a_relaxation_that_proves_and_whose_sessions_have_times() -> None:
    two = LONGER + LIMIT + "limit uses(find) <= 1 within 2 h\n"
    artifact = tcc.compile_text(two)
    proved = tcc.prove(artifact, "limit uses(find) <= 1 within 90 m")
    assert proved.proved and proved.certificate is not None
    assert check_proof(proved.certificate, [artifact_bytes(artifact)]).verdict == 0
    shown = tcc.prove(artifact, "never refund after find same order")
    assert shown.verdict == "refuted" and shown.session is not None
    found = tcc.prove(artifact, "limit uses(find) <= 1")
    assert found.session is not None
    assert [call.at_ms for call in found.session.calls] == [0, 7_200_001]


WIDE = """grammar w version "1"

tool pay(to: text max 4)

limit depth <= 3
"""


def test_what_other_sessions_use_is_never_proved() -> None:
    plain = tcc.compile_text(WIDE)
    wide, less = (
        tcc.compile_text(f"{WIDE}limit uses(pay) <= {most} across sessions\n") for most in (3, 2)
    )
    open_ones = [
        tcc.prove(plain, "limit uses(pay) <= 3 across sessions"),
        tcc.prove(plain, implies=wide),
        tcc.prove(less, implies=wide),
        tcc.prove(wide, finishable=True),
    ]
    assert [(found.verdict, found.codes) for found in open_ones] == [("undecided", ("P501",))] * 4
    assert tcc.prove(wide, "limit uses(pay) <= 3").proved  # each of its sessions
    assert tcc.prove(wide, reachable="pay").proved
    refuted = tcc.prove(plain, implies=less)
    assert refuted.verdict == "refuted"
    assert refuted.certificate is not None
    both = [artifact_bytes(plain), artifact_bytes(less)]
    assert check_proof(refuted.certificate, both).verdict == 0
    same = tcc.prove(wide, implies=wide)
    assert same.certificate is not None
    assert check_proof(same.certificate, [artifact_bytes(wide)] * 2).verdict == 0


def test_that_it_hangs_on_other_sessions_is_told_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when all states were met."""
    monkeypatch.setattr(search, "MOST_ACROSS", 50)
    text = WIDE.replace("<= 3", "<= 9").replace("text max 4", "text max 4, by: text max 4")
    wide = tcc.compile_text(f"{text}limit uses(pay) per to, by <= 9 across sessions\n")
    for found in (tcc.prove(wide, finishable=True), tcc.prove(wide, implies=wide)):
        if found.kind == "finishable":
            assert (found.codes, found.states) == (("P501",), 50)
        else:
            assert found.proved  # the same limit on the same tools


@pytest.mark.parametrize("kind", ["implies", "finishable"])
def test_a_list_about_a_limit_across_sessions_is_declined(kind: str) -> None:
    made = tcc.compile_text(f"{WIDE}limit uses(pay) <= 3 across sessions\n")
    tight = tcc.compile_text(f"{WIDE}limit uses(pay) <= 3 within 1 h\n")
    given = [tight, made] if kind == "implies" else [made]
    asked = certificate.ProvedQuestion(
        kind=kind, text=None, artifacts=tuple(map(artifact_of, given))
    )
    system = asked.system(listed=kind == "implies")
    if kind == "implies":
        found = certificate.by_all(system, max_states=1000, check_time=lambda: None)
        data = None if found is None else found.certificate(asked, "proved")
    else:
        data = certificate.finishing(asked, system, max_states=1000, check_time=lambda: None)
    assert data is not None
    report = check_proof(data, [artifact_bytes(one) for one in given])
    assert report.verdict == 2
    assert report.finding is not None
    assert "limits of one session" in str(report.finding)
