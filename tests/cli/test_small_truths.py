"""Names, documents and colours: what the command line and the library say that they do."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

import tcc as library
from tcc import code_pages
from tcc_certs.errors import Code
from tcc_compiler.language.catalogue import CATALOGUE
from tcc_experiments.pipeline import errors as pipeline
from tests.cli.conftest import Tcc


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Colour is kept unless somebody says otherwise."""
    monkeypatch.setattr(click.utils, "should_strip_ansi", lambda _=None, color=None: color is False)


@pytest.mark.parametrize(("value", "coloured"), [(None, True), ("", True), ("1", False)])
def test_no_color_is_kept_to(
    tcc: Tcc,
    artifact: Path,
    on_a_terminal: None,
    monkeypatch: pytest.MonkeyPatch,
    value: str | None,
    coloured: bool,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    assert ("\x1b[" in tcc("check", artifact).out) is coloured


@pytest.mark.parametrize("ending", [".tcg", ".graphml", ".json"])
def test_a_grammar_in_place_of_an_artifact_is_called_one(
    tcc: Tcc, grammar: Path, ledger: Path, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"plans{ending}"
    path.write_bytes(grammar.read_bytes())
    for arguments in (("check", path), ("validate", ledger, "--artifact", path)):
        ended = tcc(*arguments)
        assert ended.code == 2
        assert f"{path} is a grammar" in ended.err
        assert f"tcc compile {path} -o {path.with_suffix('.tcca')}" in ended.err


def test_every_code_of_the_kernel_has_a_text_of_its_own(tcc: Tcc) -> None:
    assert list(code_pages.TEXTS) == list(Code)
    assert len(set(code_pages.TEXTS.values())) == len(Code)
    for code in Code:
        ended = tcc("explain", code.value)
        assert ended.code == 0 and code_pages.TEXTS[code] in ended.out
        page = ended.out.split("; ")[-1].split(", ")[0].split(" and ")[0].strip(". \n")
        assert (Path(__file__).parents[2] / f"{page.removesuffix('.md')}.md").is_file(), page


def test_every_code_of_the_pipeline_has_a_text_and_is_no_other_code(tcc: Tcc) -> None:
    assert list(pipeline.TEXTS) == list(pipeline.PipelineCode)
    assert not {code.value for code in pipeline.PipelineCode} & {
        *CATALOGUE,
        *(c.value for c in Code),
    }
    assert {code.value[0] for code in pipeline.PipelineCode}.isdisjoint(
        code.value[0] for code in Code
    )
    for code in pipeline.PipelineCode:
        assert pipeline.TEXTS[code] in tcc("explain", code.value.lower()).out


@pytest.mark.parametrize("arguments", [(), ("--list",)])
def test_explain_lists_all_codes(tcc: Tcc, arguments: tuple[str, ...]) -> None:
    listed = [line.split()[0] for line in tcc("explain", *arguments).out.splitlines()]
    assert listed == [*CATALOGUE, *(code.value for code in (*Code, *pipeline.PipelineCode))]
    found = tcc("explain", *arguments, "--json").json["codes"]
    assert [item["code"] for item in found] == listed


def test_what_was_not_decided_does_not_hold(tcc: Tcc, tmp_path: Path) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(
        'grammar g version "1"\ntool a\ntool b\nbefore b require a\nlimit depth <= 3\n'
        'accept a b\nexpect plans <= 100\nexpect implies "other.tcg"\n'
    )
    (tmp_path / "other.tcg").write_text("nothing")
    ended = tcc("test", grammar)
    assert ended.out == f"{grammar}: 1 example and 1 expectation hold; 1 is not decided\n"
    (found,) = tcc("test", grammar, "--json").json["grammars"]
    assert (found["examples"], found["expectations"], found["undecided"]) == (1, 2, 1)
    assert [one["code"] for one in found["diagnostics"]] == ["TCC506"]


def test_results_become_plain_json(grammar: Path, tmp_path: Path, tcc: Tcc) -> None:
    artifact = library.compile_file(grammar)
    path, ledger = tmp_path / "a.tcca", tmp_path / "run.ledger"
    library.save(artifact, path)
    seed = bytes(31) + b"\1"
    run = library.search(artifact, seed=seed, top=2, ledger=ledger)
    results = {
        "run": (run, ("run", path, "--seed", seed.hex(), "--top", 2, "--no-predict")),
        "inspect": (artifact, ("inspect", grammar)),
        "check": (library.check(path, core=True), ("check", path, "--core")),
        "validate": (library.validate(ledger, path), ("validate", ledger, "--artifact", path)),
    }
    for name, (result, command) in results.items():
        document = json.loads(json.dumps(library.to_json(result)))
        assert (document["format"], document["format_version"]) == (f"tcc.{name}", "1.0")
        printed = tcc(*command, "--json").json
        for clock in ("ledger_head",):  # goes with the time of day in the header
            document.pop(clock, None), printed.pop(clock, None)
        assert document == printed
    with pytest.raises(TypeError, match="a run, an artifact or a report is needed, not int"):
        getattr(library, "to_json")(5)  # noqa: B009 - past the type checker


def test_the_version_is_that_of_the_package() -> None:
    assert isinstance(library.__version__, str) and library.__version__[0].isdigit()
    assert "__version__" in dir(library)


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ("tool b", False),
        ("tool b { cost 0.1 }", True),
        ("tool b { price 1 }", True),
        ("tool b\nplan = a b", True),
        ("tool b\nplan = any*", False),
    ],
)
def test_the_figures_of_a_search_are_shown_only_with_costs_or_a_plan(
    more: str, shown: bool, tmp_path: Path, tcc: Tcc
) -> None:
    grammar = tmp_path / "g.tcg"
    grammar.write_text(f'grammar g version "1"\ntool a\n{more}\nlimit depth <= 3\n')
    for command in ("compile", "inspect"):
        names = {line.split()[0] for line in tcc(command, grammar).out.splitlines() if line.strip()}
        assert {"plans", "states", "calls"} <= names
        for name in ("counts", "cheapest", "race"):
            assert (name in names) is shown, (command, name)
