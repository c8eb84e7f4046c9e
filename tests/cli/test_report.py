"""``tcc report``: the verdict of its page is the validation's; of a forgery nothing else is told.

Texts of artifacts and ledgers are hostile: whatever they say, a page has the elements that its code
makes, one style and one script, both its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc.commands import report_command
from tcc.pages import policy
from tcc.pages.record_table import Changed, records
from tcc_certs.formats.ledger import FIRST_HEAD, seal
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tests.cli.conftest import Ended, Tcc
from tests.cli.test_session import (
    GRAMMAR as SHOP,
    played as played,  # a fixture
)
from tests.forgery.artifacts import Forge
from tests.oracle_session.shapes import NAMES, SHOP as SHAPED, shape
from tests.oracle_session.writer import sealed
from tests.pages.reading import Read, read

ROOT = Path(__file__).parents[2]
EVIL = (
    "</script><script>document.title='evil'</script><img src=x onerror=alert(1)>"
    "\"'><svg onload=alert(1)></style><base href=//evil><a href=javascript:alert(1)>&lt;<!--]]>"
    "\u202e\u2028\x1b[2J\x00 VALID"
)
MADE = {
    "html", "head", "meta", "title", "link", "style", "body", "a", "header", "p", "h1", "div",
    "span", "strong", "dl", "dt", "dd", "nav", "main", "section", "h2", "h3", "b", "em", "i",
    "code", "table", "thead", "tbody", "tr", "th", "td", "ol", "ul", "li", "details", "summary",
    "figure", "data", "svg", "line", "path", "rect", "circle", "text", "footer", "script", "img",
}  # fmt: skip


def harmless(page: Path) -> Read:
    """The page, which has what its code makes and nothing of what a file says."""
    data = page.read_bytes()
    assert b"\x1b" not in data and "\u202e".encode() not in data and b"\x00" not in data
    found = read(data)
    assert set(found.tags) <= MADE, set(found.tags) - MADE
    assert found.tags.count("script") == found.tags.count("style") == 1
    folder = ROOT / "cli" / "tcc" / "pages"
    programs = ["proved.js"] if "proved-file" in found.ids else []
    due = [(folder / name).read_text("utf-8") for name in (*programs, "page.js")]
    assert found.raw["script"] == ["\n".join(due)]
    assert found.raw["style"] == [(folder / "page.css").read_text("utf-8")]
    for tag, name, value in found.attributes:
        assert not name.startswith("on"), (tag, name)
        if (tag, name) == ("img", "src"):
            assert value.startswith("data:image/svg+xml;base64,")
            continue
        assert name not in ("src", "srcdoc", "action", "formaction", "style"), (tag, name)
        if name == "href":
            assert value.startswith("#") or (tag, value) == ("link", "data:,")
        if (tag, name) == ("meta", "content") and "src" in value:
            assert value == policy(programs)
    assert ("meta", "http-equiv", "Content-Security-Policy") in found.attributes
    return found


def report(tcc: Tcc, *arguments: object, out: Path) -> tuple[Ended, Read]:
    ended = tcc("report", *arguments, "-o", out)
    return ended, harmless(out)


def titles(page: Read) -> set[str]:
    return {name.removesuffix("-title") for name in page.ids if name.endswith("-title")}


def test_the_page_of_an_artifact(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    ended, page = report(tcc, artifact, out=tmp_path / "r.html")
    assert ended.code == 0 and "about an artifact" in ended.out
    assert page.ids["verdict"] == "VALID"
    assert "it is the automaton of its core" in page.ids["summary"]
    assert titles(page) >= {"numbers", "tools", "statements", "states", "plans", "near-misses"}
    assert "22\u2009763\u2009234 plans. exact" in page.text
    assert "before propose require read_policy" in page.text
    for plan in library.cheapest(artifact, 5):
        assert " \u2192 ".join(plan.calls) in page.text
    assert "change" not in titles(page)


def test_the_page_of_a_grammar_is_that_of_its_artifact(
    tcc: Tcc, artifact: Path, grammar: Path, tmp_path: Path
) -> None:
    _, page = report(tcc, artifact, out=tmp_path / "a.html")
    _, other = report(tcc, grammar, out=tmp_path / "g.html")
    assert page.ids["summary"] == other.ids["summary"]
    assert page.ids["plans"] == other.ids["plans"]


def test_the_page_says_what_changed(
    tcc: Tcc, grammar: Path, artifact: Path, tmp_path: Path
) -> None:
    text = grammar.read_text("utf-8").partition("\nexpect ")[0]
    newer = tmp_path / "new.tcg"
    newer.write_text(
        text.replace("limit count(ask_customer) <= 2", "limit count(ask_customer) <= 3")
    )
    out = tmp_path / "r.html"
    _, page = report(tcc, newer, "--since", artifact, out=out)
    diff = tcc("diff", artifact, newer, "--json").json
    assert diff["verdict"] == "wider" and "wider: plans were added" in page.ids["change"]
    assert "became limit count(ask_customer) <= 3" in page.ids["change"]
    assert " ".join(diff["witnesses"]["added"]["shortest"]) in page.ids["change"]
    _, page = report(tcc, artifact, "--since", artifact, out=out)
    assert "equal: the plans are the same" in page.ids["change"]


def test_the_page_of_a_run(tcc: Tcc, artifact: Path, ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    ended, page = report(tcc, ledger, "--artifact", artifact, out=out)
    validated = tcc("validate", ledger, "--artifact", artifact, "--json").json
    assert ended.code == 0
    assert page.ids["verdict"] == validated["verdict"] == "VALID"
    assert validated["summary"][1:] in page.ids["summary"]
    assert titles(page) == {"plans", "keys", "tree", "frontier", "settings", "records"}
    close = json.loads(ledger.read_bytes().splitlines()[-1])
    for plan in close["plans"]:
        assert " \u2192 ".join(plan["calls"]) in page.ids["plans"]
    assert page.ids["tree"].count("plan 1") == page.ids["tree"].count("plan 2") == 1
    lines = ledger.read_bytes().count(b"\n")
    assert sum(value == "row" for tag, _, value in page.attributes if tag == "details") == lines
    assert close["seed"] in page.ids["settings"]
    pushed, popped = waiting(ledger)
    assert page.ids["frontier"].count("calls not drawn yet") == min(25, len(pushed - popped))


def waiting(ledger: Path) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    """What was pushed and what was popped, of a run without requeues."""
    pushed, popped = set(), set()
    for line in ledger.read_bytes().splitlines():
        record = json.loads(line)
        item = record.get("node_id", ""), record.get("step", 0)
        if record["kind"] in ("node", "rest"):
            pushed.add(item)
        elif record["kind"] in ("expand", "draw", "leaf"):
            popped.add(item)
    return pushed, popped


@pytest.mark.parametrize(
    "how",
    [("--mode", "fallback"), ("--max-expansions", 3), ("--race", "coupled", "--top", 8),
     ("--after", "classify"), ("--count-bits", 8)],
    ids=lambda how: how[0],
)  # fmt: skip
def test_runs_of_every_kind_have_a_page(
    tcc: Tcc, artifact: Path, tmp_path: Path, how: tuple[object, ...]
) -> None:
    ledger, out = tmp_path / "r.ledger", tmp_path / "r.html"
    assert tcc("run", artifact, "--seed", "22" * 32, "--ledger", ledger, *how).code in (0, 2)
    ended, page = report(tcc, ledger, "--artifact", artifact, out=out)
    validated = tcc("validate", ledger, "--artifact", artifact, "--json")
    assert (page.ids["verdict"], ended.code) == (validated.json["verdict"], validated.code)
    assert validated.json["verdict"] == "VALID" and "tree" in titles(page)
    if how[0] == "--after":
        assert "After these calls: classify" in page.ids["plans"]
    if how[0] == "--mode":
        assert "bound nothing" in page.ids["keys"] and "final incumbent" not in page.text
    if how[0] == "--count-bits":
        # Rounded before anything was drawn: its keys are those of the race that it ran.
        assert "from before the downgrade" not in page.ids["frontier"] and "keys" in page.ids
        assert validated.json["claim_type"] == "RunWiseSurrogate"


def test_a_run_that_asked_has_a_page(tcc: Tcc, tmp_path: Path) -> None:
    made, ledger, out = tmp_path / "a.tcca", tmp_path / "r.ledger", tmp_path / "r.html"
    grammars = ROOT / "grammars"
    assert tcc("compile", grammars / "research.tcg", "-o", made).code == 0
    quotes = grammars / "research.quotes.json"
    run = ("run", made, "--seed", "33" * 32, "--quotes", quotes, "--ledger", ledger)
    assert tcc(*run).code == 0
    ended, page = report(tcc, ledger, "--artifact", made, out=out)
    assert ended.code == 0 and page.ids["verdict"] == "VALID"
    assert "times what a call costs" in page.text and "price_spent" in page.ids["settings"]


def test_the_page_of_a_session(tcc: Tcc, played: tuple[Path, Path], tmp_path: Path) -> None:
    ended, page = report(tcc, played[0], "--artifact", played[1], out=tmp_path / "r.html")
    assert (ended.code, page.ids["verdict"]) == (2, "INCOMPLETE")
    assert titles(page) >= {"shows", "calls", "refusals", "stands", "records"}
    assert (
        "refused R202 before refund(part = full) require check(result = pass)" in page.ids["calls"]
    )
    assert "refund1R202" in page.ids["refusals"]
    assert "result=fail" in page.ids["calls"] and "order: 17" in page.ids["calls"]
    assert "told later: refund(part=half)" in page.ids["calls"]
    assert "It may end here." in page.ids["stands"]
    assert "every call was recorded" in page.ids["shows"]


def test_a_page_is_of_the_bytes_that_were_validated(
    tcc: Tcc, played: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read once: whatever the file is by then, the page is that of what was validated."""
    validate, data = report_command.validate, played[0].read_bytes()
    report(tcc, played[0], "--artifact", played[1], out=tmp_path / "r.html")
    for lines in (data.splitlines(keepends=True)[:-1], [data, b"{}\n"], [b"another file"]):

        def swapped(*arguments: Any, lines: list[bytes] = lines, **given: Any) -> object:
            found = validate(*arguments, **given)
            played[0].write_bytes(b"".join(lines))
            return found

        played[0].write_bytes(data)
        monkeypatch.setattr(report_command, "validate", swapped)
        out = tmp_path / "other.html"
        report(tcc, played[0], "--artifact", played[1], out=out)
        assert out.read_bytes() == (tmp_path / "r.html").read_bytes()
        out.unlink()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "asked"])
def test_sessions_of_every_shape_have_a_page(tcc: Tcc, tmp_path: Path, name: str) -> None:
    made, ledger = tmp_path / "shop.tcca", tmp_path / "s.ledger"
    artifact = compile_text(SHAPED, Options(purpose="gate")).artifact
    assert artifact is not None
    made.write_bytes(artifact)
    ledger.write_bytes(sealed(shape(name)))
    ended, page = report(tcc, ledger, "--artifact", made, out=tmp_path / "r.html")
    validated = tcc("validate", ledger, "--artifact", made, "--json")
    assert (page.ids["verdict"], ended.code) == (validated.json["verdict"], validated.code)
    assert validated.json["claim_type"] in page.ids["shows"]


def changed(ledger: Path, at: int, name: str, value: object, into: Path) -> None:
    """The ledger with one member of one record changed, and its chain sealed again."""
    head, lines = FIRST_HEAD, []
    for place, line in enumerate(ledger.read_bytes().splitlines()):
        record = {key: item for key, item in json.loads(line).items() if key != "~"}
        if place == at:
            record[name] = value
        sealed_line, head = seal(record, head)
        lines.append(sealed_line)
    into.write_bytes(b"".join(lines))


def test_no_forged_member_gets_a_page_that_says_valid(
    tcc: Tcc, artifact: Path, ledger: Path, tmp_path: Path
) -> None:
    bad, out = tmp_path / "bad.ledger", tmp_path / "r.html"
    seen: set[tuple[str, str]] = set()
    for at, line in enumerate(ledger.read_bytes().splitlines()):
        record: dict[str, Any] = json.loads(line)
        for name in [*record, "zzz"]:
            if name == "~" or (record["kind"], name) in seen:
                continue
            seen.add((record["kind"], name))
            changed(ledger, at, name, EVIL, bad)
            ended, page = report(tcc, bad, "--artifact", artifact, out=out)
            # An evil schema asks for rules that there are not.
            assert (ended.code, page.ids["verdict"]) in ((1, "INVALID"), (2, "DECLINED")), name
            assert titles(page) == {"findings"}
            assert "nothing that it says is taken over" in page.text
    assert len(seen) > 50


def test_a_session_with_a_forged_member_is_not_told(
    tcc: Tcc, played: tuple[Path, Path], tmp_path: Path
) -> None:
    bad, out = tmp_path / "bad.ledger", tmp_path / "r.html"
    for at, line in enumerate(played[0].read_bytes().splitlines()):
        for name in json.loads(line):
            if name == "~":
                continue
            changed(played[0], at, name, EVIL, bad)
            ended, page = report(tcc, bad, "--artifact", played[1], out=out)
            assert (ended.code, page.ids["verdict"]) in ((1, "INVALID"), (2, "DECLINED")), name
            assert titles(page) == {"findings"}


def test_a_forged_ledger_is_shown_where_it_is_wrong(
    tcc: Tcc, artifact: Path, ledger: Path, tmp_path: Path
) -> None:
    bad, out = tmp_path / "bad.ledger", tmp_path / "r.html"
    changed(ledger, 1, "key_raw", "-1.00000000000000000000", bad)
    ended, page = report(tcc, bad, "--artifact", artifact, out=out)
    assert (ended.code, page.ids["verdict"]) == (1, "INVALID")
    assert "L504" in page.ids["findings"] and "line 2" in page.ids["findings"]
    assert "-1.00000000000000000000" in page.ids["findings"]


@pytest.mark.parametrize("cut", [1, 2, 100])
def test_a_cut_ledger_is_incomplete_and_told_as_far_as_it_goes(
    tcc: Tcc, artifact: Path, ledger: Path, tmp_path: Path, cut: int
) -> None:
    data = ledger.read_bytes()
    cut_one = tmp_path / "cut.ledger"
    cut_one.write_bytes(data[: len(data) // 2] if cut == 100 else data[:-cut])
    ended, page = report(tcc, cut_one, "--artifact", artifact, out=tmp_path / "r.html")
    assert (ended.code, page.ids["verdict"]) == (2, "INCOMPLETE")
    assert titles(page) >= {"findings", "tree", "records"}
    assert "The ledger has no close record yet." in page.ids["plans"]


@pytest.mark.parametrize("data", [b"", b"{", b"nothing\n", b'{"schema":"tcc.session/1.0"}\n'])
def test_what_is_no_ledger_has_a_page_that_says_so(
    tcc: Tcc, artifact: Path, tmp_path: Path, data: bytes
) -> None:
    ledger, out = tmp_path / "l", tmp_path / "r.html"
    ledger.write_bytes(data)
    ended, page = report(tcc, ledger, "--artifact", artifact, out=out)
    assert page.ids["verdict"] in ("INVALID", "INCOMPLETE") and titles(page) == {"findings"}
    assert ended.code == {"INVALID": 1, "INCOMPLETE": 2}[page.ids["verdict"]]


def test_a_withheld_seed_decides_nothing_until_it_is_given(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    ledger, out, seed = tmp_path / "w.ledger", tmp_path / "r.html", "11" * 32
    run = ("run", artifact, "--seed", seed, "--withhold-seed", "--ledger", ledger)
    assert tcc(*run).code == 0
    ended, page = report(tcc, ledger, "--artifact", artifact, out=out)
    assert (ended.code, page.ids["verdict"]) == (2, "DECLINED")
    assert "D302" in page.ids["findings"] and seed not in page.text
    ended, page = report(tcc, ledger, "--artifact", artifact, "--seed", seed, out=out)
    assert (ended.code, page.ids["verdict"]) == (0, "VALID")


def test_a_ledger_of_another_artifact_is_invalid(
    tcc: Tcc, artifact: Path, ledger: Path, tmp_path: Path
) -> None:
    other, out = tmp_path / "other.tcca", tmp_path / "r.html"
    library.save(library.compile_text(SHOP), other)
    ended, page = report(tcc, ledger, "--artifact", other, out=out)
    assert (ended.code, page.ids["verdict"]) == (1, "INVALID")
    assert "L202" in page.ids["findings"] and titles(page) == {"findings"}
    pin = ("--pin", "00" * 32)
    ended, page = report(tcc, ledger, "--artifact", artifact, *pin, out=out)
    assert (ended.code, page.ids["verdict"]) == (1, "INVALID") and "P101" in page.ids["findings"]
    ended, page = report(tcc, artifact, *pin, out=out)
    assert (ended.code, page.ids["verdict"]) == (1, "INVALID") and "P101" in page.ids["findings"]


def test_a_forged_artifact_is_not_told(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.tcca", tmp_path / "r.html"
    for path in (("grammar", "name"), ("counts",), ("options", "beta"), ("version",)):
        bad.write_bytes(Forge(artifact.read_bytes()).member(*path, value=EVIL).seal())
        ended, page = report(tcc, bad, out=out)
        assert (ended.code, page.ids["verdict"]) in ((1, "INVALID"), (2, "DECLINED")), path
        assert titles(page) == {"findings"}
    count = Forge(artifact.read_bytes()).set("plans", -1, 7).seal()
    bad.write_bytes(count)
    ended, page = report(tcc, bad, out=out)
    assert (ended.code, page.ids["verdict"]) == (1, "INVALID") and "C301" in page.ids["findings"]


def test_hostile_texts_of_a_valid_artifact_are_texts(tcc: Tcc, tmp_path: Path) -> None:
    evil = json.dumps(EVIL)
    grammar = (
        f'grammar g version "1 </title><script>"\n'
        f'tool `{EVIL[:98]}` (k: {evil} | plain, `{EVIL[:88]}`?: text ~ "</script><b>.*") '
        f"gives (r: {evil} | no) {{ cost 1 doc {evil} }}\n"
        f"tool b\nrule r = b\nplan = any{{1,3}} r?\n"
        f"before b require no b since any - b\nlimit count(`{EVIL[:98]}`(k = {evil})) <= 1\n"
    )
    source, out = tmp_path / "g.tcg", tmp_path / "r.html"
    source.write_text(grammar, encoding="utf-8")
    made = tmp_path / "g.tcca"
    ended = tcc("compile", source, "-o", made)
    assert ended.code == 0, ended.err
    for asked in ((source,), (made,), (made, "--since", source)):
        ended, page = report(tcc, *asked, out=out)
        assert ended.code == 0, ended.err
        assert page.ids["verdict"] == "VALID" and "document.title='evil'" in page.text
    ledger = tmp_path / "l"
    assert tcc("run", made, "--seed", "44" * 32, "--top", 3, "--ledger", ledger).code == 0
    ended, page = report(tcc, ledger, "--artifact", made, out=out)
    assert ended.code == 0 and "document.title='evil'" in page.ids["tree"]


def test_hostile_values_of_a_valid_session_are_texts(tcc: Tcc, tmp_path: Path) -> None:
    artifact, ledger = library.compile_text(SHOP), tmp_path / "s.ledger"
    library.save(artifact, tmp_path / "a.tcca")
    gate = library.Gate(artifact, ledger=ledger, show=["approve.order"])
    with gate.call("approve", {"order": EVIL}) as permit:
        permit.done()
    with pytest.raises(library.Refused), gate.call(EVIL, {}):
        pass
    gate.finish()
    ended, page = report(
        tcc, ledger, "--artifact", tmp_path / "a.tcca", out=tmp_path / "r.html"
    )  # fmt: skip
    assert (ended.code, page.ids["verdict"]) == (0, "VALID")
    assert "document.title='evil'" in page.ids["calls"] and "R101" in page.ids["refusals"]


def test_the_ledger_that_is_told_is_the_one_that_was_validated(
    tcc: Tcc, artifact: Path, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, out = tmp_path / "other.ledger", tmp_path / "r.html"
    assert tcc("run", artifact, "--seed", "55" * 32, "--ledger", other).code == 0
    validate = report_command.validate

    def swapped(*arguments: Any, **given: Any) -> object:
        found = validate(*arguments, **given)
        ledger.write_bytes(other.read_bytes())
        return found

    monkeypatch.setattr(report_command, "validate", swapped)
    ended = tcc("report", ledger, "--artifact", artifact, "-o", out)
    assert ended.code == 2 and "was changed while it was read" in ended.err
    assert not out.exists()
    with pytest.raises(Changed):
        list(records(other, "ab" * 32))


def test_a_page_is_the_same_bytes_whatever_hashes_are(
    tcc: Tcc, artifact: Path, ledger: Path, tmp_path: Path
) -> None:
    asked = (("a", (artifact,)), ("l", (ledger, "--artifact", artifact)))
    for name, arguments in asked:
        report(tcc, *arguments, out=tmp_path / f"{name}.html")
    code = "".join(
        f"try: main({['report', *map(str, arguments), '-o', str(tmp_path / f'{name}.other')]})\n"
        "except SystemExit: pass\n"
        for name, arguments in asked
    )
    environment = os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, "-c", f"from tcc.main import main\n{code}"]
    subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL)
    for name, _ in asked:
        other = (tmp_path / f"{name}.other").read_bytes()
        assert (tmp_path / f"{name}.html").read_bytes() == other


def test_a_long_ledger_has_a_page_of_bounded_size(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    sizes = []
    for top in (30, 150):
        ledger, out = tmp_path / f"{top}.ledger", tmp_path / "r.html"
        run = ("run", artifact, "--seed", "66" * 32, "--top", top, "--race", "coupled")
        assert tcc(*run, "--ledger", ledger).code == 0
        ended, page = report(tcc, ledger, "--artifact", artifact, out=out)
        assert ended.code == 0
        sizes.append((ledger.stat().st_size, out.stat().st_size))
        lines = ledger.read_bytes().count(b"\n")
        assert f"500 of {lines:,}".replace(",", " ") in page.ids["records"]
        assert "is left out" in page.ids["frontier"]
        rows = sum(value == "row" for tag, _, value in page.attributes if tag == "details")
        assert rows == 500
        if top == 150:
            assert "50 of 150 plans are shown" in page.ids["plans"]
    assert sizes[1][0] > 4 * sizes[0][0] and sizes[1][1] < 1.6 * sizes[0][1]


def test_an_output_over_an_input_is_refused(
    tcc: Tcc, artifact: Path, ledger: Path, grammar: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(ledger)
    copy = tmp_path / "g.tcg"
    copy.write_bytes(grammar.read_bytes())
    for asked, out in (
        ((artifact,), artifact),
        ((copy,), copy),
        ((artifact, "--since", copy), copy),
        ((ledger, "--artifact", artifact), ledger),
        ((ledger, "--artifact", artifact), artifact),
        ((ledger, "--artifact", artifact), link),
    ):
        before = out.read_bytes()
        ended = tcc("report", *asked, "-o", out)
        assert ended.code == 2 and "is what is reported on" in ended.err
        assert out.read_bytes() == before
    folder = tcc("report", artifact, "-o", tmp_path)
    assert folder.code == 2


def test_what_does_not_fit_together_is_refused(
    tcc: Tcc, artifact: Path, ledger: Path, grammar: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r.html"
    for asked, said in (
        ((ledger,), "is a ledger: name its artifact"),
        ((artifact, "--artifact", artifact), "is an artifact; --artifact is for its ledgers"),
        ((ledger, "--artifact", grammar), "tcc compile"),
        ((ledger, "--artifact", artifact, "--since", artifact), "--since is for artifacts"),
        ((artifact, "--seed", "11" * 32), "--seed is for ledgers"),
        ((ledger, "--artifact", artifact, "--key", "11" * 32), "a session, for its key"),
        ((artifact, "--beta", "3"), "--beta is for compiling a grammar"),
        ((tmp_path / "none",), "does not exist"),
        ((tmp_path,), "is a directory"),
    ):
        ended = tcc("report", *asked, "-o", out)
        assert ended.code == 2 and said in ended.err, (asked, ended.err)
        assert not out.exists()
    assert tcc("report", artifact).code == 2
    bad = tmp_path / "bad.tcg"
    bad.write_text("grammar")
    assert tcc("report", bad, "-o", out).code == 1
    assert not out.exists()


def test_programs_are_told_the_verdict(
    tcc: Tcc, artifact: Path, ledger: Path, tmp_path: Path
) -> None:
    out = tmp_path / "r.html"
    found = tcc("report", ledger, "--artifact", artifact, "-o", out, "--json").json
    assert (found["format"], found["format_version"]) == ("tcc.report", "1.0")
    assert (found["kind"], found["verdict"], found["output"]) == ("run", "VALID", str(out))
    assert found["summary"].startswith("claim upheld")
