"""Each form of a statement through every surface that shows statements.

One table has the forms.  Listings show each statement once, by its text, its reason and its place.
Refusals name the statement that refuses: in the gate, in the transcript of its ledger, on a page.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc_runtime.artifact.load import Artifact
from tests.cli.conftest import Tcc
from tests.gate.grammars import artifact, do
from tests.pages.reading import read

HEAD = """grammar forms version "1.0"

given user: text
given desk?: first | second

tool find(order: text)
  gives (owner: text, total: number 0 .. 1000, status: open | closed, items: list of text)
tool approve(order: text, amount: number 0 .. 500) gives (answer: yes | no)
tool refund(order: text, amount: number 0 .. 500)
tool ship(order: text, speed: slow | fast)
tool pack
tool reply(message: text)
tool close { price 2 }
tool drop

let paid = refund | ship
let seen = last(find(same order))
let early = ship(speed = fast)
let risky(c) = c.amount > 100

"""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A statement of the table.

    Attributes:
        text: canonical; written: the source, if that has another layout.
        because: its sentence.
        place: what holds it; holds: of ``both`` the text that plans satisfy.
        made: calls that are done before: tool, arguments, answers.
        refused: the call that it refuses then; None: the end.
        code: of that refusal; kind: of its reason.
        left: what the gate says is left of it before that; `...`: nothing.
    """

    text: str
    because: str | None = None
    place: str
    holds: str | None = None
    written: str = ""
    made: tuple[tuple[str, dict[str, Any], Any], ...] = ()
    refused: tuple[str, dict[str, Any]] | None = None
    code: str = "R202"
    kind: str = "require"
    left: Any = ...

    @property
    def source(self) -> str:
        reason = "" if self.because is None else f' because "{self.because}"'
        return self.written or f"{self.text}{reason}\n"


A: dict[str, Any] = {"order": "a"}
FOUND = {"owner": "ann", "total": 100, "status": "open", "items": ["x"]}
FIND, CLOSE, PACK = ("find", A, FOUND), ("close", {}, None), ("pack", {}, None)
SHIP, REFUND = {**A, "speed": "fast"}, {**A, "amount": 60}
PAID = ("refund", REFUND, None)

ROWS = [
    # One tool, sets, alternatives, differences.
    Row(text="before ship require find", place="automaton", refused=("ship", SHIP)),
    Row(text="before paid require no close", because="Nothing is paid after the end.",
        place="automaton", made=(CLOSE,), refused=("ship", SHIP)),
    Row(text="before refund | ship require find(same order)", place="both",
        holds="before refund | ship require find(_)", refused=("refund", REFUND)),
    Row(text="before any - (close | reply) require no close", place="automaton",
        made=(CLOSE,), refused=("pack", {})),
    Row(text="before any require no drop", because="After a drop nothing happens.",
        place="automaton", made=(("drop", {}, None),), refused=("pack", {})),
    # Filters, and `let`s.
    Row(text="before ship(speed = fast) require pack", place="automaton", refused=("ship", SHIP)),
    Row(text="before early require pack since ship", place="automaton", refused=("ship", SHIP)),
    Row(text="before refund(amount > 50) require unused approve(same (order, amount), "
             "answer = yes) within 1 h", because="Larger refunds need an approval.",
        place="gate", refused=("refund", REFUND)),
    Row(text="before refund { let o = last(find(same order))  require o.owner = session.user }",
        because="Only the customer's own orders.", place="gate",
        written="before refund {\n  let o = last(find(same order))\n"
                "  require o.owner = session.user because \"Only the customer's own orders.\"\n}\n",
        made=(("find", A, {**FOUND, "owner": "bob"}),), refused=("refund", REFUND)),
    Row(text="before refund require not risky(this) or session.desk = second", place="gate",
        refused=("refund", {**A, "amount": 160})),
    Row(text="before ship require seen.status = open", place="both",
        holds="before ship require last(find(_)).status = open",
        made=(("find", A, {**FOUND, "status": "closed"}),), refused=("ship", SHIP)),
    Row(text='before reply require no reply(message = "stop")', place="gate",
        made=(("reply", {"message": "stop"}, None),), refused=("reply", {"message": "x"})),
    # Quantifiers, aggregates, windows.
    Row(text="before close require every find(status = closed)", place="automaton",
        made=(FIND,), refused=("close", {})),
    Row(text="before close require count(pack) in 1 .. 2 and sum(refund.amount) <= 300",
        place="both", holds="before close require count(pack) in 1 .. 2 and _",
        refused=("close", {})),
    Row(text="before close require count(distinct(find.order)) >= 2", place="gate",
        made=(FIND, FIND), refused=("close", {})),
    Row(text="before drop require pack within 2 h", place="both",
        holds="before drop require pack within _", refused=("drop", {})),
    Row(text="before pack require no pack since any - pack", place="automaton",
        made=(PACK,), refused=("pack", {})),
    Row(text="before reply require message in find.items", place="gate", made=(FIND,),
        refused=("reply", {"message": "y"})),
    # Statements of other kinds.
    Row(text='forbid reply(message ~ "(?i).*secret.*")', because="Secrets stay inside.",
        place="gate", refused=("reply", {"message": "a secret"}), kind="forbid"),
    Row(text='forbid any(order = "x")', place="gate", refused=("ship", {**SHIP, "order": "x"}),
        kind="forbid"),
    Row(text="finally require close or no refund", place="automaton", made=(PAID,), code="R204"),
    Row(text="finally require count(find) <= 3", because="At most three look-ups.",
        place="automaton", made=(FIND,) * 3, refused=("find", A), code="R201"),
    Row(text="after refund owe reply", because="A refund is announced.", place="automaton",
        made=(PAID,), code="R204", kind="owe"),
    Row(text="after ship owe find(order = this.order, status = closed) within 2 h", place="both",
        holds="after ship owe find(_, status = closed)", made=(("ship", SHIP, None),),
        code="R204", kind="owe"),
    Row(text="limit count(pack) <= 2", place="automaton", made=(PACK, PACK),
        refused=("pack", {}), kind="limit", left=0),
    Row(text="limit count(ship(speed = fast)) per order <= 1 in session",
        because="One fast parcel for each order.", place="gate", made=(("ship", SHIP, None),),
        refused=("ship", SHIP), kind="limit", left={"a": 0}),
    Row(text="limit count(paid within 30 d) per session.user, order <= 1 in session",
        place="gate", made=(PAID,), refused=("ship", SHIP), kind="limit", left={"ann, a": 0}),
    Row(text="limit sum(refund.amount) <= 100", place="gate", made=(PAID,),
        refused=("refund", REFUND), kind="limit", left=40),
    Row(text="limit sum(refund.amount) per order <= seen.total across sessions",
        place="gate", made=(FIND, PAID), refused=("refund", REFUND), kind="limit", left=None),
    Row(text="limit count(find) <= 2 across sessions", place="both",
        holds="limit count(find) <= 2", made=(FIND, FIND), refused=("find", A), kind="limit",
        left=0),
    Row(text="limit depth <= 6", place="automaton", made=(FIND,) * 6, refused=("find", A),
        code="R203", kind="total", left=0),
    Row(text="limit price <= 3", because="Closing costs.", place="automaton", made=(CLOSE,),
        refused=("close", {}), code="R203", kind="total", left=1),
]  # fmt: skip
DEPTH = Row(text="limit depth <= 9", place="automaton")


# Listings.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The grammar with all statements, its artifact, and the ledger of a session."""
    found = tmp_path_factory.mktemp("listings")
    grammar = found / "forms.tcg"
    grammar.write_text(HEAD + "".join([row.source for row in ROWS]), "utf-8")
    library.save(library.compile_file(grammar), found / "forms.tcca")
    session = session_of(library.load(found / "forms.tcca"), found)
    do(session, "find", A, result=FOUND)
    assert session.check("drop").code == "R202"
    session.finish()
    session.close()
    return found


def session_of(of: Artifact, folder: Path) -> library.Gate:
    return library.Gate(
        of, ledger=folder / "forms.ledger", given={"user": "ann"}, clock=lambda: 1_000,
        account=library.Account(folder / "forms.account"), durable=False,
    )  # fmt: skip


def listed(lines: bool) -> list[dict[str, Any]]:
    """The member `statements` of reports."""
    text = HEAD
    found = []
    for row in ROWS:
        line = text.count("\n") + 1 + 2 * row.source.startswith("before refund {")
        item = {"text": row.text, "because": row.because, "place": row.place}
        item |= {} if row.holds is None else {"holds": row.holds}
        found.append({**item, "line": line if lines else None})
        text += row.source
    return found


def test_compile_and_inspect_of_a_grammar_list_statements_with_their_lines(
    tcc: Tcc, folder: Path, tmp_path: Path
) -> None:
    grammar, made = folder / "forms.tcg", tmp_path / "a.tcca"
    assert tcc("compile", grammar, "-o", made, "--json").json["statements"] == listed(True)
    assert tcc("inspect", grammar, "--json").json["statements"] == listed(True)


@pytest.mark.parametrize("core", [(), ("--core",)])
def test_inspect_check_and_the_checker_list_statements_of_an_artifact(
    tcc: Tcc, folder: Path, core: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    path = folder / "forms.tcca"
    if not core:
        assert tcc("inspect", path, "--json").json["statements"] == listed(False)
    assert tcc("check", path, *core, "--json").json["statements"] == listed(False)


def test_validate_lists_the_statements_that_decided(tcc: Tcc, folder: Path) -> None:
    paths = folder / "forms.ledger", "--artifact", folder / "forms.tcca"
    drawn_on = "--account", folder / "forms.account"
    ended = tcc("validate", *paths, *drawn_on, "--json")
    assert (ended.code, ended.json["statements"]) == (0, listed(False))
    for row in ROWS:
        assert ended_once(tcc("validate", *paths, *drawn_on).out, row)


@pytest.mark.parametrize("command", ["compile", "check", "validate"])
def test_sarif_has_the_statements_of_each_file(
    tcc: Tcc, folder: Path, tmp_path: Path, command: str
) -> None:
    arguments = {
        "compile": [folder / "forms.tcg", "-o", tmp_path / "a.tcca"],
        "check": [folder / "forms.tcca"],
        "validate": [folder / "forms.ledger", "--artifact", folder / "forms.tcca"],
    }[command]
    (run,) = tcc(command, *arguments, "--output-format", "sarif").json["runs"]
    (file,) = run["artifacts"]
    assert file["properties"]["statements"] == listed(command == "compile")
    assert "plan" not in [one["text"] for one in file["properties"]["statements"]]


def ended_once(text: str, row: Row) -> bool:
    """Whether a listing has a statement once, with its place, reason and held part below it."""
    lines = [line.strip() for line in text.splitlines()]
    at = [n for n, line in enumerate(lines) if line.split("  ", 1)[-1].strip() == row.text]
    below = [] if row.because is None else [f'because "{row.because}"']
    below += [] if row.holds is None else [f"plans: {row.holds}"]
    return (
        len(at) == 1
        and lines[at[0]].startswith(row.place)
        and lines[at[0] + 1 : at[0] + 1 + len(below)] == below
    )


@pytest.mark.parametrize("command", ["compile", "inspect", "check", "tcc-certs"])
def test_people_read_each_statement_once(
    tcc: Tcc,
    folder: Path,
    tmp_path: Path,
    command: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if command == "tcc-certs":
        from tcc_certs.__main__ import main

        main(["check", str(folder / "forms.tcca")])
        text = capfd.readouterr().out
    elif command == "compile":
        text = tcc(command, folder / "forms.tcg", "-o", tmp_path / "a.tcca").out
    else:
        text = tcc(command, folder / "forms.tcca").out
    assert [row.text for row in ROWS if not ended_once(text, row)] == []
    assert " calls)" not in text and "\n    gate       plan" not in text


def test_inspect_shows_what_statements_speak_of(tcc: Tcc, folder: Path) -> None:
    lines = [line.strip() for line in tcc("inspect", folder / "forms.tcca").out.splitlines()]
    for shown in (
        "approve(order: text, amount: number 0 .. 500) gives (answer: yes | no)",
        "session.desk?: first | second",
        "seen = last(find(same order))",
        "risky(c) = c.amount > 100",
    ):
        assert shown in lines
    words = {line.partition(": ")[0] for line in lines[lines.index("words:") + 1 :]}
    assert {"same f", "this", "session.x", "last(C)", "C since S", "unused C", "owe"} < words
    assert not {"now", "pairs(a, b)", "strict", "errors mean failed"} & words


def test_the_page_of_an_artifact_has_each_statement(tcc: Tcc, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert tcc("report", folder / "forms.tcca", "-o", page).code == 0
    words = read(page.read_bytes()).text
    for row in ROWS:
        assert all(one in words for one in (row.text, row.because, row.holds) if one is not None)
    assert "let risky(c) = c.amount > 100" in words


# Refusals.


def refused(row: Row, session: library.Gate) -> library.Refused:
    """The refusal of the row's call, or of the end, after the calls that are made before."""
    with pytest.raises(library.Refused) as refusal:
        if row.refused is None:
            session.finish()
        else:
            with session.call(*row.refused):
                pytest.fail("it is refused")
    return refusal.value


def grammar_of(row: Row) -> Artifact:
    return artifact(HEAD + row.source + ("" if "depth" in row.text else f"{DEPTH.text}\n"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text[:40])
def test_a_gate_names_the_statement_that_refuses(row: Row, tmp_path: Path) -> None:
    drawn_on = library.Account(tmp_path / "forms.account")
    options: Any = {"given": {"user": "ann"}, "account": drawn_on, "clock": lambda: 1_000}
    with library.Gate(grammar_of(row), **options) as session:
        for tool, arguments, result in row.made:
            do(session, tool, arguments, result=result)
        assert session.remaining.get(row.text, ...) == row.left
        owed = [one["text"] for one in session.owed]
        assert owed == ([row.text] if row.kind == "owe" else [])
        refusal = refused(row, session)
        if row.refused is not None:
            decision = session.check(*row.refused)
            assert (decision.code, decision.because) == (row.code, refusal.because)
    (reason,) = refusal.because
    named = {"kind": row.kind, "text": row.text, "because": row.because}
    assert {**reason, **named} == reason and refusal.code == row.code
    if row.code != "R201":
        assert (row.because or row.text) in str(refusal)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.refused is not None], ids=lambda row: row.text[:40]
)
def test_a_transcript_names_the_statement_that_refused(tcc: Tcc, tmp_path: Path, row: Row) -> None:
    path = tmp_path / "forms.tcca"
    library.save(grammar_of(row), path)
    session = session_of(grammar_of(row), tmp_path)
    for tool, arguments, result in row.made:
        do(session, tool, arguments, result=result)
    refused(row, session)
    session.finish(abandon=True)
    session.close()
    of_session = tmp_path / "forms.ledger", "--artifact", path
    shown = tcc("session", "show", *of_session, "--json").json
    (event,) = [one for one in shown["events"] if one["kind"] == "refusal"]
    found = event["statement"], event["text"], event["because"]
    if row.code == "R201":
        assert found == (None, "no plan continues with this call", None)
        return
    assert found == (0, row.text, row.because)
    page = tmp_path / "page.html"
    tcc("report", *of_session, "-o", page)
    words = read(page.read_bytes()).text
    assert row.text in words and (row.because or "") in words


def plan_call(tool: str, arguments: dict[str, Any], answers: dict[str, Any] | None) -> str:
    """A call as plans have it: with its listed arguments and answers."""
    known = {**arguments, **(answers or {"status": "open"})}
    listed = {"ship": ("speed",), "find": ("status",)}.get(tool, ())
    return f"{tool}({', '.join([f'{name}={known[name]}' for name in listed])})"


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row.place != "gate" and row.refused and row.code != "R201"],
    ids=lambda row: row.text[:40],
)
def test_why_names_the_statement_that_excludes_a_plan(row: Row) -> None:
    assert row.refused is not None
    calls = [plan_call(*one) for one in (*row.made, (*row.refused, None))]
    found = library.why(grammar_of(row), [one.removesuffix("()") for one in calls])
    (statement,) = found.because
    assert not found.allowed and found.position == len(row.made)
    assert (statement.kind, statement.text, statement.because) == (
        row.kind, row.text, row.because,
    )  # fmt: skip
