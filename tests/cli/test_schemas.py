"""The published schemas: of every command, closed, and able to refuse.

That every document which a test of the command line sees is held to its schema is done where those
tests run commands (`tests/cli/documents.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from jsonschema import Draft202012Validator

from tcc.main import COMMANDS, cli
from tcc.outputs.schemas import DOCUMENTS, schema_of, text_of
from tests.cli.conftest import GRAMMARS, Tcc
from tests.cli.documents import asks_for_json, check_document, check_printed

PUBLISHED = Path(__file__).parents[2] / "docs" / "schemas"
# What a key's owner signed is theirs, and the schemas of `tcc schema --json` have one of their own.
OPEN = {
    ("verify", "predicate"), ("sign", "predicate"), ("schema", "additionalProperties"),
    ("prove", "arguments"), ("prove", "given"),
    ("why", "arguments"), ("why", "given"),
    ("diff", "arguments"), ("diff", "added_given"), ("diff", "removed_given"),
    ("test", "arguments"), ("test", "given"),
}  # fmt: skip


def takes_json(command: click.Command) -> bool:
    if isinstance(command, click.Group):
        return any(map(takes_json, command.commands.values()))
    return any("--json" in option.opts for option in command.params)


def test_every_command_with_json_has_a_schema_and_no_other_has_one() -> None:
    ctx = click.Context(cli)
    found = {name: cli.get_command(ctx, name) for name in COMMANDS}
    told = {name for name, command in found.items() if command is not None and takes_json(command)}
    assert told | {"error"} == set(DOCUMENTS)
    assert set(COMMANDS) - told == {"completion", "gate", "lsp", "serve"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_is_one_of_2020_12_and_its_copy_is_current(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    assert (PUBLISHED / f"{name}.json").read_text("utf-8") == text_of(name)


def test_no_copy_is_left_of_a_schema_that_is_gone() -> None:
    assert {path.stem for path in PUBLISHED.iterdir()} == set(DOCUMENTS)


def objects(name: str, value: Any, member: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        if value.get("type") == "object":
            yield member, value
        for key, item in value.items():
            yield from objects(name, item, key)
    elif isinstance(value, list):
        for item in value:
            yield from objects(name, item, member)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_object_is_closed_or_a_mapping_of_names(name: str) -> None:
    for member, schema in objects(name, schema_of(name)):
        if (name, member) in OPEN or schema.get("maxProperties") == 0:
            continue
        told = schema["additionalProperties"]
        assert told is False or (isinstance(told, dict) and told and "properties" not in schema)


@pytest.fixture
def document(tcc: Tcc) -> dict[str, Any]:
    grammar = GRAMMARS / "support_refund.tcg"
    return tcc("run", grammar, "--seed", "11" * 32, "--json").json


def test_a_schema_refuses_a_member_more_one_less_and_one_of_another_type(
    document: dict[str, Any],
) -> None:
    check_document(document)
    forged: list[dict[str, Any]] = [
        {**document, "more": 1},
        {name: value for name, value in document.items() if name != "mode"},
        {**document, "expansions": "12"},
        {**document, "expansions": -1},
        {**document, "seed": document["seed"].upper() + "g"},
        {**document, "format": "tcc.inspect"},
        {**document, "format": "tcc.unknown"},
        {**document, "format_version": "2.0"},
        {**document, "plans": [{**document["plans"][0], "more": 1}]},
    ]
    for one in forged:
        with pytest.raises(AssertionError):
            check_document(one)


def test_two_documents_or_none_do_not_pass_for_one() -> None:
    text = json.dumps({"format": "tcc.error", "format_version": "1.0", "error": "x"})
    check_printed(["check", "x", "--json"], text)
    for out in ("", text + text, "VALID"):
        with pytest.raises(ValueError):
            check_printed(["check", "x", "--output-format", "json"], out)
    assert not asks_for_json(["import", "mcp", "--", "server", "--json"])


def test_schema_prints_what_is_published(tcc: Tcc) -> None:
    assert tcc("schema", "check").json == json.loads((PUBLISHED / "check.json").read_text())
    assert tcc("schema").out.split() == list(DOCUMENTS)
    assert set(tcc("schema", "--json").json["schemas"]) == set(DOCUMENTS)
    assert set(tcc("schema", "run", "--json").json["schemas"]) == {"run"}
    ended = tcc("schema", "chek")
    assert ended.code == 2 and "Did you mean 'check'?" in ended.err


@pytest.mark.parametrize(
    "command",
    [
        ("no-such-command", "--json"),
        ("check", "no such file", "--json"),
        ("check", "no such file", "--output-format", "json"),
        ("diff", "--json"),
        ("run", "no such file", "--json"),
        ("pin", "no such file", "--json"),
        ("sign", "--json"),
        ("verify", "no such file", "--json"),
        ("session", "show", "no such file", "--json"),
    ],
)
def test_bad_usage_is_one_document_too(tcc: Tcc, command: tuple[str, ...]) -> None:
    ended = tcc(*command)
    assert ended.code == 2 and ended.json["format"] == "tcc.error"


def test_an_error_of_ours_is_one_document_too(
    tcc: Tcc, artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcc.commands import count_command

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("broken on purpose")

    monkeypatch.setattr(count_command.command, "callback", broken)
    ended = tcc("count", artifact, "--json")
    assert ended.code == 3 and ended.json["error"].startswith("internal error: ZeroDivisionError")


def test_a_check_against_a_broken_source_is_one_document(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    (tmp_path / "bad.tcg").write_text("grammar (")
    ended = tcc("check", artifact, "--source", tmp_path / "bad.tcg", "--json")
    assert ended.code == 1, ended
    assert "TCC101" in [one["code"] for one in ended.json["diagnostics"]]


def test_a_session_that_does_not_conform_is_one_document(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    import tcc as library

    ledger = tmp_path / "s.ledger"
    library.Gate(library.load(artifact), ledger=ledger).close()
    data = ledger.read_bytes()
    ledger.write_bytes(data.replace(b'"grammar":"support_refund"', b'"grammar":"other"', 1))
    ended = tcc("session", "show", ledger, "--artifact", artifact, "--json")
    assert ended.code == 1 and ended.json["findings"][0]["code"] == "L102"


def test_openings_and_lists_are_documents_too(tcc: Tcc, artifact: Path) -> None:
    opened = tcc("run", artifact, "--seed", "11" * 32, "--opening-only", "--json").json
    plain = tcc("run", artifact, "--seed", "11" * 32, "--opening-only").out
    assert opened["opening"] == plain.strip()
    listed = tcc("experiments", "--list", "--json").json
    assert "soundness" in [one["name"] for one in listed["experiments"]]
