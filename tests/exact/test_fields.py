"""Exact questions about fields of language 1.2, and about what a session is given and learns."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes, artifact_of
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.fields import surely_fit
from tcc_runtime.exact import certificate
from tests.exact.test_proofs import changed_at, code_of, lines_of

NEWER = 'grammar g version "1"\n'
ENDS = "plan = any*\nlimit depth <= 2\n"
LIST = """tool a gives (; all: list of text)
tool b(; x: text max 9, too: list of text, full: list min 1 of text)
"""
ROWS = "tool a gives (; rows: list of (x: text max 9))\ntool b(; x: text max 9)\n"
DECLINED = [
    "tool a { parallel\n}\n",
    'tool a(; j: json, x: text max 9 at "/j/x", y?: text max 9 at "/j/x/y")\n',
    'tool a(; j: json, x: list of text at "/j/*")\n',
    'tool a(; j: json, x: text at "/j")\n',
    'tool a(; j: text max 9, x: text max 9 at "/j/x")\n',
    'tool a gives (; x: text at "/x/y", y: json at "/x")\n',
    'tool a gives (; x: text at "")\n',
    'given c: json, u: text at "/c/u"\ntool a\nrequire a where session.u = "x"\n',
    "tool a(; x: text max 9, y?: text max 9)\nlet of(x) = a\nrequire a where of(x).y = y\n",
    f"{LIST}require a where count(seen.all) >= 2 before b\n",
    f"{LIST}require a where count(seen.all = x) >= 1 before b\n",
    f"{LIST}require a where seen.all != too before b\n",
    f'{LIST}require a same all = too where "q" in seen.all before b\n',
    f"{LIST}require a where every seen.all as a, full as b (a = b) before b\n",
    f"{LIST}require a where some seen.all as a (x in too) before b\n",
    "tool b(; n: list of integer 0 .. 9, i: integer 0 .. 9)\nrequire b where some n as a (a > i)\n",
    f"{LIST}limit uses(b) per too <= 0\n",
    f"{LIST}let l = a.all\nrequire b where x in session.l\n",
    f"{ROWS}require a where some seen.rows as r (r.x = x) before b\n",
    f"{ROWS}require a where x in seen.rows.x before b\n",
    (
        "tool a gives (s: ok | *; all: list of text)\ntool b(; x: text)\n"
        "require a where seen.s in seen.all before b\n"
    ),
    (
        "tool a gives (; all: list of time)\ntool b(; x: time utc)\n"
        "require a where x in seen.all before b\n"
    ),
    'tool b(; all: list of text)\nrequire b where some all as a (a ~ "[a-z]{500}")\n',
    "given l: list of text\ntool b(; x: text max 9)\nrequire b where x in session.l\n",
    "tool a gives (; t: time)\ntool b(; x: time utc)\nrequire a where seen.t < x before b\n",
    'tool b(; x: text)\nrequire b where x ~ "aaaaaaaaaaaaaaaaaaaa+"\n',
    "tool a gives (; t: time)\ntool b\nrequire a where seen.t < now before b\n",
    "tool a gives (s: ok | *)\ntool b(; x: text)\nlet w = a.s\nrequire b where x = session.w\n",
]


@pytest.mark.parametrize("text", DECLINED)
def test_what_is_not_covered_is_left_open_and_declined(text: str) -> None:
    """By the search and by the kernel, each by itself."""
    made = tcc.compile_text(f"{NEWER}{text}{ENDS}")
    digest = certificate.core_digest(made.file)
    tool = made.core.tools[-1].name
    for asked in ({"statement": f"never {tool}"}, {"implies": made}, {"finishable": True}):
        kind = next(iter(asked))
        found = tcc.prove(made, **asked)  # type: ignore[arg-type]
        if kind != "implies":  # of the same statements nothing is asked
            codes = ("P502",) if "now" in text and kind == "finishable" else ("P501",)
            assert (found.verdict, found.codes) == ("undecided", codes), found.whys
            assert found.certificate is None
        head = {"format": "tcc.proof", "format_version": "1.0", "proof": "proved"}
        of = {"kind": kind, "text": f"never {tool}"} if kind == "statement" else {"kind": kind}
        sides = [made, made] if kind == "implies" else [made]
        line = {**head, "question": of, "cores": [digest] * len(sides), "parts": []}
        data = encode(line) + b"\n"
        refused = check_proof(data, [artifact_bytes(one) for one in sides]).finding
        assert refused is not None and refused.code.value in ("D101", "T101")
        if kind != "implies":
            assert refused.code.value == "D101"


@pytest.mark.parametrize(
    ("text", "session"),
    [
        ("tool a gives (s: ok | *)\n", [{}]),
        ("tool a gives (s?: ok | bad)\n", [{}]),
        ("tool a gives (; s: text max 9, t?: time, d: date, all: list of text)\n", [{}]),
        ("tool a(; x?: text max 9 or null)\n", [{}]),
        ("tool a(; t: time, d: date utc, all: list of text)\n", None),
        ('tool a { errors mean failed ~ "Error.*"\n}\n', [{}]),
        (
            'tool a(k: m | n at "/j/k"; j: json, x: text ~ "b" at "/j/x/y")\n',
            [{"j": {"k": "m", "x": {"y": "b"}}}],
        ),
    ],
)
def test_fields_that_no_statement_names_are_covered(
    text: str, session: list[dict[str, Any]] | None
) -> None:
    made = tcc.compile_text(f"{NEWER}{text}{ENDS}limit uses(a) <= 1\n")
    never, other = tcc.prove(made, "never a"), tcc.prove(made, implies=made)
    ends = tcc.prove(made, finishable=True)
    assert (never.verdict, other.verdict) == ("refuted", "proved")
    assert never.session is not None
    if session is not None:
        assert [call.arguments for call in never.session.calls] == session
    for found, artifacts in ((never, [made]), (other, [made, made]), (ends, [made])):
        if found.verdict == "undecided":
            assert "/j" in text and found.codes == ("P501",)  # it may not fit
            continue
        assert found.certificate is not None
        report = check_proof(found.certificate, [artifact_bytes(one) for one in artifacts])
        assert (report.verdict, report.proof) == (0, found.verdict), report.finding


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("tool a gives (s: ok | *)", "tool a gives (s: ok | bad | *)"),
        ("tool a gives (; s: text max 8)", "tool a gives (; s: text max 9)"),
        ("tool a(; x?: text max 9 or null)", "tool a(; x?: text max 9)"),
        ("tool a(; x: list of text)", "tool a(; x: list of flag)"),
        ('tool a(; j: json, x: flag at "/j/x")', 'tool a(; j: json, x: flag at "/j/y")'),
        ('tool a(; j: json, x: flag at "/j/x")', 'tool a(; j: json max 99, x: flag at "/j/x")'),
        ('tool a(; j: json, x: flag at "/j/x")', "tool a(; j: json)"),
        ('tool a(k: m | n at "/j/k"; j: json)', 'tool a(; j: json, k: text at "/j/k")'),
        ("tool a", "tool a gives (; s: text max 9)"),
        ("tool a(; t: time)", 'tool a(; t: time "+02:00")'),
        ("tool a(; x?: text max 9 or null)", "tool a(x: m | n)"),
        ('tool a { errors mean failed ~ "E.*"\n}', 'tool a { errors mean failed ~ "F.*"\n}'),
    ],
)
def test_tools_whose_fields_are_not_alike_are_left_open(mine: str, theirs: str) -> None:
    both = [tcc.compile_text(f"{NEWER}{text}\n{ENDS}") for text in (mine, theirs)]
    found = tcc.prove(both[0], implies=both[1])
    assert (found.verdict, found.codes) == ("undecided", ("P501",))
    asked = certificate.ProvedQuestion(
        kind="implies", text=None, artifacts=tuple(map(artifact_of, both))
    )
    with pytest.raises(Rejected) as refusal:
        asked.system()
    assert refusal.value.code.value == "D101"


NULL_P = 'tool a(; x?: text max 9 or null)\nrequire a where x? = "p"'


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        ('tool a(; x?: text max 9, t: time)\nrequire a where x? = "p"', "tool a(; t: time)",
         "refuted"),
        (NULL_P, f'{NULL_P}\nrequire a where x? != "q"', "proved"),
        ("tool a(; t: time, x: text max 9)", "tool a(x: m | n; t: time)", "refuted"),
        ("tool a(x: m | n; t: time)", "tool a(; t: time, x: text max 9)", "proved"),
        ("tool a(; t: time, x: text max 8)", "tool a(; t: time, x: text max 9)", "proved"),
        ("tool a(; t: time, x: text max 9)", "tool a(; t: time, x: text max 8)", "refuted"),
        ("tool a(; x?: text max 9)", "tool a(; x?: text max 9 or null)", "proved"),
        ("tool a(x: m | n)", "tool a(; x?: text max 9 or null)", "proved"),
        ("tool a\ntool b", "tool a", "refuted"),
        ('tool a(; x?: text max 9)\nrequire a where x? != "q"',
         'tool a(; x: text max 9)\nrequire a where x != "q"', "refuted"),
        ("tool a(x: m | n; t: time)", "tool a(x: m | n | o; t: time)", "proved"),
    ],
)  # fmt: skip
def test_tools_whose_fields_differ_as_they_may_are_decided(
    mine: str, theirs: str, verdict: str
) -> None:
    both = [tcc.compile_text(f"{NEWER}{text}\n{ENDS}") for text in (mine, theirs)]
    found = tcc.prove(both[0], implies=both[1])
    assert (found.verdict, found.codes) == (verdict, ()), found.whys
    assert found.certificate is not None
    report = check_proof(found.certificate, [artifact_bytes(one) for one in both])
    assert (report.verdict, report.proof) == (0, verdict), report.finding


WORST = "\U0001f600"  # twelve bytes, as JSON is written
PLACED = [
    ('x: text max 9 at "/j/x"', {"x": WORST * 9}, 2 + 18 + 18 + 110),
    ('x: number 0 .. 9 at "/j/x"', {"x": 0.1234567890123456}, 2 + 18 + 18 + 1200),
    ('x: flag at "/j/x"', {"x": False}, 2 + 18 + 18 + 22),
    ('x: time at "/j/x"', {"x": "2026-01-01T00:00:00Z"}, 2 + 18 + 18 + 22),
    ('x: flag at "/j/k/x"', {"k": {"x": False}}, 2 + 18 + 18 + 18 + 22),
    ('x: flag at "/j/x", y: flag at "/j/y"', {"x": False, "y": False}, 2 + 2 * (18 + 18 + 22)),
]


@pytest.mark.parametrize(("field", "worst", "size"), PLACED, ids=[one[0] for one in PLACED])
def test_values_fit_for_sure_where_the_longest_does(field: str, worst: Any, size: int) -> None:
    """A grammar whose one call may not fit is not said to end."""
    assert len(json.dumps(worst, separators=(",", ":"))) <= size
    for most, fits in ((size, True), (size - 1, False)):
        text = f"{NEWER}tool a(; j: json max {most}, {field})\nplan = a\n"
        made = tcc.compile_text(text)
        assert surely_fit(made.core.tools[0]) == fits
        found = tcc.prove(made, finishable=True)
        assert (found.verdict, found.codes) == (
            ("proved", ()) if fits else ("undecided", ("P501",))
        )


def test_a_listed_value_fits_for_sure_where_the_longest_does() -> None:
    for most, fits in ((2 + 18 + 18 + 38, True), (2 + 18 + 18 + 37, False)):
        text = f'{NEWER}tool a(k: m | abc at "/j/k"; j: json max {most})\nplan = a\n'
        assert surely_fit(tcc.compile_text(text).core.tools[0]) == fits


NULL = """tool a(; x?: text max 9 or null)
require a where x? = "p"
require a where x? != "p"
"""


def test_a_field_that_is_null_is_not_left_out_where_the_other_side_has_it_not() -> None:
    """The one side lets null alone through; the other has no such parameter, and refuses it."""
    both = [tcc.compile_text(f"{NEWER}{text}{ENDS}") for text in (NULL, "tool a\n")]
    made = []
    for artifact in both:
        with tcc.Gate(artifact) as gate:
            try:
                with gate.call("a", {"x": None}) as permit:
                    permit.done()
                made.append("done")
            except tcc.Refused as refused:
                made.append(str(refused.code))
            gate.finish(abandon=True)
    assert made == ["done", "R102"]
    found = tcc.prove(both[0], implies=both[1])
    assert (found.verdict, found.codes) == ("undecided", ("P501",))
    asked = certificate.ProvedQuestion(
        kind="implies", text=None, artifacts=tuple(map(artifact_of, both))
    )
    with pytest.raises(Rejected) as refusal:
        asked.system()
    assert refusal.value.code.value == "D101"
    # What no statement names it is refused for, whatever it is.
    bare = tcc.compile_text(f"{NEWER}tool a(; x?: text max 9 or null)\n{ENDS}")
    assert tcc.prove(bare, implies=both[1]).verdict == "refuted"


LEARNED = """grammar g version "1"

given u: text

tool find(k: a | b, id: text) gives (owner: text, rows: list of (no: text, free: integer 0 .. 9))
tool `seek it`(id: text) gives (owner: text)
tool pay(id: text, owner: text, no: text)

given who from find.owner | `seek it`.owner

let found(i) = last((find | `seek it`)(id = i))
let row(n) = last(find.rows(`no` = n))
limit depth <= 3
"""


@pytest.mark.parametrize(
    ("statement", "decided"),
    [
        ("require pay where owner = session.who", True),
        ("require pay where found(id).owner = owner", False),
        ("require pay where row(no).free >= 1", False),
        ("limit uses(pay) per session.who <= 1", True),
    ],
)
def test_statements_of_what_is_looked_up_are_read_and_left_open(
    statement: str, decided: bool, tmp_path: Path
) -> None:
    """By a question, and by the lints, which ask about each statement of the grammar."""
    artifact = tcc.compile_text(f"{LEARNED}{statement}\n")
    for one in (statement, artifact.core.monitors[0].text):
        found = tcc.prove(artifact, one)
        due = ("proved", ()) if decided else ("undecided", ("P501",))
        assert (found.verdict, found.codes) == due
    with pytest.raises(tcc.CompileError, match="nothing"):
        tcc.prove(artifact, "require pay where owner = session.nothing")
    path = tmp_path / "g.tcg"
    path.write_text(f"{LEARNED}{statement}\n", "utf-8")
    code = "TCC704" if statement.startswith("limit") else "TCC705"
    left = [one.message for one in tcc.lint(path).undecided]
    assert any(one.startswith(f"not decided: {code}: ") for one in left) != decided


GIVEN = f"""{NEWER}given user: text max 9, old?: text max 9 or null
tool find(; id: text max 9) gives (s: ok | *; owner: text max 9, rank?: flag at "/of/rank")
tool pay(; j: json, id: text max 9 at "/j/id", note?: text at "/j/note", t: time,
  to: text max 9 at "/j/to")
plan = any*
limit depth <= 2
let who = find.owner
require find same id where seen.owner = session.user before pay
"""
FORGED_SESSIONS: list[tuple[str, Callable[[list[Any]], object], str]] = [
    ("nothing is given", lambda x: x[0].pop("given"), "T101"),
    ("less is given", lambda x: x[0].update(given=[]), "T301"),
    ("more is given", lambda x: x[0]["given"].append(["who", "x"]), "T301"),
    ("another is given", lambda x: x[0]["given"][0].__setitem__(1, "z"), "T301"),
    ("an answer that is not told", lambda x: x[1][2].pop(1), "T301"),
    ("an answer of another type", lambda x: x[1][2][1].__setitem__(1, "0123456789"), "T301"),
    ("another answer", lambda x: x[1][2][1].__setitem__(1, "zz"), "T301"),
    ("an answer that the tool has not", lambda x: x[1][2].append(["z", "x"]), "T301"),
    ("an answer that is not listed", lambda x: x[1][1][0].__setitem__(1, "*"), "VALID"),
    ("an answer that nobody lists", lambda x: x[1][1][0].__setitem__(1, "bad"), "T301"),
    ("what stands elsewhere", lambda x: x[2][2][1].__setitem__(1, '{"id":"","to":"y"}'), "T301"),
    ("what stands nowhere", lambda x: x[2][2][1].__setitem__(1, "{}"), "T301"),
    ("nothing that it stands in", lambda x: x[2][2].pop(1), "T301"),
    ("no value at a place", lambda x: x[2][2].pop(0), "T301"),
    ("a time that is none", lambda x: x[2][2][2].__setitem__(1, '"today"'), "T301"),
]


@pytest.mark.parametrize(("name", "forge", "code"), FORGED_SESSIONS)
def test_a_forged_session_with_fields_is_refused(
    name: str, forge: Callable[[list[Any]], object], code: str
) -> None:
    made = tcc.compile_text(GIVEN)
    found = tcc.prove(made, "never pay")
    assert found.session is not None and found.certificate is not None
    assert found.session.given == {"user": ""}
    assert [call.arguments for call in found.session.calls] == [
        {"id": ""},
        {"j": {"id": "", "to": ""}, "t": "2026-01-01T00:00:00Z"},
    ]
    given = [artifact_bytes(made)]
    assert code_of(changed_at(lines_of(found.certificate), lambda lines: None), given) == "VALID"
    assert code_of(changed_at(lines_of(found.certificate), forge), given) == code


def _steps(lines: list[Any]) -> int:
    """The line that says where the start is."""
    return int(1 + lines[0]["parts"][0]["states"])


FORGED_LISTS: list[tuple[str, Callable[[list[Any]], object], tuple[str, ...]]] = [
    ("a start less", lambda x: x[_steps(x)].pop(), ("T201",)),
    ("one start", lambda x: x.__setitem__(_steps(x), x[_steps(x)][0]), ("T101", "T201")),
    ("another start", lambda x: x[_steps(x)].reverse(), ("T201", "T203", "T204", "T205")),
    ("no attributes", lambda x: x[1][2].clear(), ("T101", "T201")),
    ("attributes twice", lambda x: x[1][2][-1].__setitem__(3, 2), ("T101", "T201")),
    ("another attribute", lambda x: x[1][2][-1].__setitem__(2, [9]), ("T201", "T203", "T204")),
    ("attributes of another tool", lambda x: x[1][2][-1].__setitem__(1, 1 << 12), ("T101",)),
    ("a number of attributes", lambda x: x[1][2][-1].__setitem__(1, 63), ("T101",)),
    ("a text for an attribute", lambda x: x[1][2][-1][2].__setitem__(0, "x"), ("T101",)),
]


ALSO = "require pay where to != session.who\nlimit uses(pay) per session.old <= 1\n"


@pytest.mark.parametrize(("name", "forge", "codes"), FORGED_LISTS)
def test_a_forged_list_with_attributes_is_refused(
    name: str, forge: Callable[[list[Any]], object], codes: tuple[str, ...]
) -> None:
    certificate, given = _proof_with_attributes()
    assert code_of(changed_at(lines_of(certificate), forge), given) in codes


@cache
def _proof_with_attributes() -> tuple[bytes, list[bytes]]:
    """A proof about what a session is given and learns, and the artifact that it is about."""
    artifact = artifact_of(tcc.compile_text(f"{GIVEN}{ALSO}"))
    found = tcc.prove(artifact, "require find same id where seen.owner = session.user before pay")
    assert found.proved and found.certificate is not None
    given = [artifact_bytes(artifact)]
    assert code_of(found.certificate, given) == "VALID"
    return found.certificate, given


def test_a_state_that_ends_has_the_attributes_of_its_session_once() -> None:
    """It is a state of the file, and need not be one that a call leads to."""
    text = """given u: text max 9
tool pay(; one: text max 9)
require pay where one = session.u
"""
    artifact = artifact_of(tcc.compile_text(f"{NEWER}{text}{ENDS}"))
    found = tcc.prove(artifact, finishable=True)
    assert found.proved and found.certificate is not None
    lines = lines_of(found.certificate)
    first = 2 + 2 * lines[0]["states"]
    given = [artifact_bytes(artifact)]
    assert code_of(found.certificate, given) == "VALID" and len(lines[first][2]) == 1

    def other(facts: list[Any]) -> str:
        return code_of(changed_at(lines, lambda x: x[first].__setitem__(2, facts)), given)

    ((side, slot, key, many),) = lines[first][2]
    assert other([]) == other([[side, slot, key, 1 + many]]) == "T101"


def test_an_attribute_that_a_listed_answer_tells_is_one_of_its_values() -> None:
    text = """tool find gives (s: p | q)
tool pay(; x: text max 9)
let who = find.s
require pay where x = session.who
"""
    artifact = artifact_of(tcc.compile_text(f"{NEWER}{text}{ENDS}"))
    found = tcc.prove(artifact, "require find where seen.s = x before pay")
    assert found.proved and found.certificate is not None
    held = [fact[2] for line in lines_of(found.certificate) if len(line) == 4 for fact in line[2]]
    assert ["p"] in held
    assert code_of(found.certificate, [artifact_bytes(artifact)]) == "VALID"


def test_an_attribute_that_is_learned_is_not_the_one_of_another_let() -> None:
    """Two sides that learn from other fields have two attributes."""
    mine = tcc.compile_text(f"{GIVEN}require pay where to = session.who\n")
    other = GIVEN.replace("let who = find.owner", "let who = find.id")
    theirs = tcc.compile_text(f"{other}require pay where to = session.who\n")
    found = tcc.prove(mine, implies=theirs)
    assert (found.verdict, found.codes) == ("refuted", ())
    assert found.certificate is not None
    both = [artifact_bytes(mine), artifact_bytes(theirs)]
    assert check_proof(found.certificate, both).verdict == 0
    assert tcc.prove(mine, implies=mine).proved
