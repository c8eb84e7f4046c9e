"""What the language server tells and answers: a real client, and a real process."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tcc.main import COMMANDS
from tcc_compiler.language.source import MAX_SOURCE_BYTES
from tcc_compiler.layout.format import format_text
from tests.editor.conftest import Client

DESK = """grammar desk version "1"
tool look { doc "Looks *closely* 😀" cost 1 } # 😀
tool write(tone: plain | warm) { cost 2 cost 3 when tone = warm }
rule looks = look+
plan = looks write
limit depth <= 6
rule spare = look
accept look write(tone=warm)
"""


def put(text: str) -> tuple[str, types.Position]:
    """A text without its mark, and where the mark stood, in units of UTF-16."""
    before, after = text.split("§")
    line = before.rpartition("\n")[2]
    units = len(line.encode("utf-16-le")) // 2
    return before + after, types.Position(line=before.count("\n"), character=units)


def changed(text: str, edits: list[types.TextEdit]) -> str:
    """A text after edits, by an implementation of the protocol's places of its own."""
    lines = text.split("\n")
    starts = [sum(len(line) + 1 for line in lines[:at]) for at in range(len(lines) + 1)]

    def offset(at: types.Position) -> int:
        line = (lines[at.line] if at.line < len(lines) else "").encode("utf-16-le")
        return starts[at.line] + len(line[: 2 * at.character].decode("utf-16-le"))

    for edit in sorted(edits, key=lambda edit: offset(edit.range.start), reverse=True):
        start, end = offset(edit.range.start), offset(edit.range.end)
        text = text[:start] + edit.new_text + text[end:]
    return text


def spot(where: types.Range) -> tuple[int, int, int, int]:
    return where.start.line, where.start.character, where.end.line, where.end.character


def codes(found: list[types.Diagnostic]) -> list[Any]:
    return [item.code for item in found]


def at(
    client: Client, method: str, kind: Any, uri: str, position: types.Position, **more: Any
) -> Any:
    return client.ask(method, kind(text_document=client.doc(uri), position=position, **more))


def hover(client: Client, uri: str, position: types.Position) -> Any:
    return at(client, types.TEXT_DOCUMENT_HOVER, types.HoverParams, uri, position)


def offered(client: Client, uri: str, text: str) -> list[str]:
    """What is offered at the mark of a text."""
    plain, position = put(text)
    client.open(uri, plain)
    items = at(client, types.TEXT_DOCUMENT_COMPLETION, types.CompletionParams, uri, position)
    return [item.label for item in items]


def renamed(client: Client, uri: str, position: types.Position, name: str) -> Any:
    return at(client, types.TEXT_DOCUMENT_RENAME, types.RenameParams, uri, position, new_name=name)


def actions(client: Client, uri: str, where: types.Range, only: list[str] | None = None) -> Any:
    return client.ask(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionParams(
            text_document=client.doc(uri), range=where,
            context=types.CodeActionContext(diagnostics=[], only=only),
        ),
    )  # fmt: skip


def line(number: int, column: int = 0) -> types.Range:
    here = types.Position(line=number, character=column)
    return types.Range(start=here, end=here)


def test_the_unsaved_text_is_diagnosed_with_its_lints_and_again_when_it_changes(
    client: Client, file: Path
) -> None:
    uri = client.open(file.as_uri(), DESK)
    found = client.wait_for(uri)
    assert codes(found) == ["TCC702"]
    assert spot(found[0].range) == (6, 5, 6, 10)
    assert found[0].severity == types.DiagnosticSeverity.Warning
    client.change(uri, DESK.replace("plan = looks", "plan = lookz"))
    found = client.wait_for(uri, lambda found: "TCC202" in codes(found))
    wrong = next(item for item in found if item.code == "TCC202")
    assert spot(wrong.range) == (4, 7, 4, 12)
    assert wrong.severity == types.DiagnosticSeverity.Error
    assert "lookz" in wrong.message
    client.close(uri)
    assert client.wait_for(uri, lambda found: not found) == []
    assert not file.exists()


def test_changes_that_follow_each_other_quickly_are_diagnosed_once(
    client: Client, file: Path
) -> None:
    uri = client.open(file.as_uri(), DESK)
    client.wait_for(uri)
    before = client.rounds[uri]
    for number in range(20):
        client.change(uri, DESK + f"tool t{number}\nrule a = \n")
    client.wait_for(uri, lambda found: "TCC101" in codes(found))
    assert client.rounds[uri] == before + 1


def test_columns_count_units_of_utf16_behind_characters_outside_the_basic_plane(
    client: Client, file: Path
) -> None:
    text, position = put('grammar g version "1"\ntool `😀𝒳`\nplan = `😀𝒳` nobody\ntool b§\n')
    uri = client.open(file.as_uri(), text)
    found = client.wait_for(uri, lambda found: "TCC202" in codes(found))
    start = len(text.split("\n")[2].partition("nobody")[0]) + 2
    wrong = next(item for item in found if item.code == "TCC202")
    assert spot(wrong.range) == (2, start, 2, start + 6)
    shown = hover(client, uri, position)
    assert spot(shown.range) == (3, position.character - 1, 3, position.character)


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 18)])
def test_other_encodings_of_columns_are_spoken_where_an_editor_prefers_them(
    tmp_path: Path, encoding: str, column: int
) -> None:
    client = Client()
    answer = client.start(tmp_path, [encoding, "utf-16"])
    assert answer.capabilities.position_encoding == encoding
    text = 'grammar g version "1"\ntool a\nplan = `😀𝒳` nobody\n'
    uri = client.open((tmp_path / "a.tcg").as_uri(), text)
    found = client.wait_for(uri)
    starts = {item.range.start.character for item in found if item.range.start.line == 2}
    assert starts == {7, column}
    assert client.stop() == 0


def test_a_lone_carriage_return_ends_a_line_as_the_protocol_has_it(
    client: Client, file: Path
) -> None:
    uri = client.open(
        file.as_uri(), 'grammar g version "1"\rtool a\r\nplan = a nobody # \u2028 x\n'
    )
    found = client.wait_for(uri)
    assert (1, 0) in {(f.range.start.line, f.range.start.character) for f in found}


def test_used_files_are_those_that_are_open_and_get_their_own_diagnostics(
    client: Client, file: Path
) -> None:
    root = 'grammar g version "1"\nuse "parts.tcg"\nplan = a b\n'
    part = file.with_name("parts.tcg")
    part.write_text("tool a\ntool b\n", "utf-8")
    uri = client.open(file.as_uri(), root)
    assert "TCC709" in codes(client.wait_for(uri))
    other = client.open(part.as_uri(), "tool a\n")
    found = client.wait_for(uri, lambda found: "TCC202" in codes(found))
    assert spot(found[0].range)[0] == 2
    client.change(other, "tool a\ntool b {\n")
    assert codes(client.wait_for(other, bool)) == ["TCC114"]
    client.change(other, "tool a\ntool b\n")
    client.wait_for(uri, lambda found: "TCC709" in codes(found))
    assert client.wait_for(other, lambda found: "TCC114" not in codes(found)) is not None


def test_a_refused_tcc_toml_is_told_in_that_file(client: Client, file: Path) -> None:
    config = file.with_name("tcc.toml")
    config.write_text("[lint]\nwrong = 1\n", "utf-8")
    uri = client.open(file.as_uri(), DESK)
    assert codes(client.wait_for(config.as_uri())) == ["TCC723"]
    assert codes(client.wait_for(uri)) == ["TCC702"]


def test_hovering_a_tool_shows_declaration_doc_calls_and_the_exact_number_of_plans(
    client: Client, file: Path
) -> None:
    text, position = put(DESK.replace("plan = looks write", "plan = looks w§rite?"))
    uri = client.open(file.as_uri(), text)
    client.wait_for(uri)
    shown = hover(client, uri, position).contents.value
    # look^1..6, look^1..5 with one of two ways to write: 6 + 10.
    assert shown == (
        "```tcg\ntool write(tone: plain | warm) { cost 2 cost 3 when tone = warm }\n```"
        "\n\n2 calls, in 10 of 16 plans"
    )
    look = hover(client, uri, types.Position(line=3, character=14)).contents.value
    assert "\n\nLooks \\*closely\\* 😀\n\n1 call, in 16 of 16 plans" in look
    rule = hover(client, uri, types.Position(line=3, character=6)).contents.value
    assert rule == "```tcg\nrule looks = look+\n```"
    value = hover(client, uri, types.Position(line=7, character=24)).contents.value
    assert value == "field of tool `write`\n\n```tcg\ntone: plain | warm\n```"
    assert "at most `6` calls" in hover(client, uri, types.Position(5, 2)).contents.value


def test_definitions_and_references_reach_used_files_and_all_that_use_them(
    client: Client, file: Path
) -> None:
    parts = file.with_name("parts.tcg")
    parts.write_text("# 😀\ntool fetch(k: 1 | 2)\n", "utf-8")
    one, two = file, file.with_name("two.tcg")
    text = 'grammar {} version "1"\nuse "parts.tcg"\nplan = fetch(k=2) | fetch\n'
    two.write_text(text.format("two"), "utf-8")
    uri = client.open(one.as_uri(), text.format("one"))
    there = types.Position(line=2, character=9)
    found = at(client, types.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams, uri, there)
    assert [(f.uri, spot(f.range)) for f in found] == [(parts.as_uri(), (1, 5, 1, 10))]
    value = types.Position(line=2, character=15)
    found = at(client, types.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams, uri, value)
    assert [(f.uri, spot(f.range)) for f in found] == [(parts.as_uri(), (1, 18, 1, 19))]
    path = types.Position(line=1, character=6)
    found = at(client, types.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams, uri, path)
    assert [f.uri for f in found] == [parts.as_uri()]
    for declared in (True, False):
        found = at(
            client, types.TEXT_DOCUMENT_REFERENCES, types.ReferenceParams, uri, there,
            context=types.ReferenceContext(include_declaration=declared),
        )  # fmt: skip
        places = sorted((f.uri, spot(f.range)[:2]) for f in found)
        uses = [(u, p) for u in (one.as_uri(), two.as_uri()) for p in ((2, 7), (2, 20))]
        assert places == sorted([*uses, *([(parts.as_uri(), (1, 5))] if declared else [])])


def test_a_tool_is_renamed_in_every_file_and_put_in_backticks_where_it_needs_them(
    client: Client, file: Path
) -> None:
    parts = file.with_name("parts.tcg")
    parts.write_text("tool fetch(k: 1 | 2)\n", "utf-8")
    two = file.with_name("two.tcg")
    text = 'grammar one version "1"\nuse "parts.tcg"\nplan = fetch{1,2} # fetch 😀\n'
    more = "limit count(`fetch`) <= 3\nlimit sum(fetch.k) <= 9\nbefore fetch(k = 1) require fetch\n"
    two.write_text(text + more, "utf-8")
    uri = client.open(file.as_uri(), text)
    edit = renamed(client, uri, types.Position(line=2, character=8), "web fetch")
    assert edit.changes.keys() == {uri, parts.as_uri(), two.as_uri()}
    after = changed(text + more, edit.changes[two.as_uri()])
    due = (text + more).replace("`fetch`", "fetch").replace("fetch", "`web fetch`")
    assert after == due.replace("# `web fetch`", "# fetch")
    assert changed(parts.read_text("utf-8"), edit.changes[parts.as_uri()]) == (
        "tool `web fetch`(k: 1 | 2)\n"
    )


def test_a_rule_is_renamed_and_the_edited_text_compiles(client: Client, file: Path) -> None:
    uri = client.open(file.as_uri(), DESK)
    edit = renamed(client, uri, types.Position(line=4, character=8), "peeks")
    assert changed(DESK, edit.changes[uri]) == DESK.replace("looks", "peeks")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("write", "has a tool"),
        ("looks", "has a rule"),
        ("", "1 to 128 characters"),
        ("a" * 129, "has 129"),
        ("a\u200bb", "U\\+200B"),
    ],
)
def test_a_name_that_is_taken_or_none_is_refused(
    client: Client, folder: Path, name: str, why: str
) -> None:
    uri = client.open((folder / "refused.tcg").as_uri(), DESK)
    with pytest.raises(JsonRpcException, match=why):
        renamed(client, uri, types.Position(line=1, character=6), name)


def test_nothing_is_renamed_where_a_text_has_an_error_or_the_word_is_a_value(
    client: Client, file: Path
) -> None:
    uri = client.open(file.as_uri(), DESK + "rule broken = (\n")
    with pytest.raises(JsonRpcException, match="has syntax errors"):
        renamed(client, uri, types.Position(line=1, character=6), "peek")
    client.change(uri, DESK)
    with pytest.raises(JsonRpcException, match="this is a value"):
        renamed(client, uri, types.Position(line=2, character=18), "mood")
    with pytest.raises(JsonRpcException, match="no name here"):
        renamed(client, uri, types.Position(line=5, character=0), "mood")
    with pytest.raises(JsonRpcException, match="cannot name a rule"):
        renamed(client, uri, types.Position(line=3, character=6), "two words")


POLICY = """grammar desk version "1"
given customer: text
shape row (id: text, owner: text)
tool find(order: text) gives row
tool refund(order: text, amount: number 0 .. 500, n: 1 | 2) { cost n }
tool note(order: text)
let held = refund | note
let row_of(o) = last(find(order = o))
limit depth <= 9
before held(order != "x") {
  let r = row_of(order)
  require r.owner = session.customer
  require no refund(same order) because "order"
}
limit sum(refund.amount) per order <= 500 in session
"""


@pytest.mark.parametrize(
    ("mark", "old", "places"),
    [
        ("let r§ =", "r", ("let r =", "require r.owner")),
        ("let row_of(o§)", "o", ("row_of(o)", "order = o)")),
        ("let row_of§(", "row_of", ("let row_of", "let r = row_of")),
        ("let held§", "held", ("let held", "before held")),
        ("shape row§", "row", ("shape row", "gives row")),
        ("given customer§", "customer", ("given customer", "session.customer")),
        ("r.owner§", "owner", ("owner: text", "r.owner")),
        ("refund.amount§", "amount", ("amount: number", "refund.amount")),
        ("cost n§", "n", ("n: 1", "cost n")),
        (
            "(same order§)", "order",
            ("refund(order:", "note(order:", "order !=", "of(order)", "same order", "per order"),
        ),
    ],
)  # fmt: skip
def test_names_of_policies_are_renamed_in_their_scope(
    client: Client, file: Path, mark: str, old: str, places: tuple[str, ...]
) -> None:
    _, position = put(POLICY.replace(mark.replace("§", ""), mark, 1))
    uri = client.open(file.as_uri(), POLICY)
    new = "renamed_name"
    due = POLICY
    for place in places:
        assert place in due
        due = due.replace(place, re.sub(rf"\b{old}\b", new, place))
    edit = renamed(client, uri, position, new)
    assert changed(POLICY, edit.changes[uri]) == due
    found = at(
        client, types.TEXT_DOCUMENT_REFERENCES, types.ReferenceParams, uri, position,
        context=types.ReferenceContext(include_declaration=True),
    )  # fmt: skip
    assert {spot(one.range) for one in found} <= {spot(one.range) for one in edit.changes[uri]}


def test_fields_of_several_files_that_one_word_names_are_renamed_together(
    client: Client, file: Path
) -> None:
    parts = {
        "find.tcg": "tool find(order: text)\n",
        "pay.tcg": "tool pay(order: text)\n",
        "two.tcg": 'grammar two version "1"\nuse "pay.tcg"\nlimit depth <= 3\n'
        "limit count(pay) per order <= 1 in session\n",
    }
    for name, text in parts.items():
        file.with_name(name).write_text(text)
    text = (
        'grammar one version "1"\nuse "find.tcg"\nuse "pay.tcg"\nlimit depth <= 3\n'
        "before pay require find(same order)\n"
    )
    uri = client.open(file.as_uri(), text)
    edit = renamed(client, uri, types.Position(line=4, character=30), "number")
    parts[file.name] = text
    assert edit.changes.keys() == {file.with_name(name).as_uri() for name in parts}
    for name, before in parts.items():
        after = changed(before, edit.changes[file.with_name(name).as_uri()])
        assert after == before.replace("order", "number")


@pytest.mark.parametrize(
    ("mark", "name", "why"),
    [
        ("let held§", "find", "has a tool 'find' already"),
        ("given customer§", "", "1 to 128 characters"),
        ("shape row§", "a b", "cannot name a shape"),
        ("let r§ =", "refund", "would have mistakes .* TCC234"),
        ("cost n§", "order", "would not say the same|would have mistakes"),
    ],
)
def test_a_name_that_would_change_the_meaning_is_refused(
    client: Client, file: Path, mark: str, name: str, why: str
) -> None:
    _, position = put(POLICY.replace(mark.replace("§", ""), mark, 1))
    uri = client.open(file.as_uri(), POLICY)
    with pytest.raises(JsonRpcException, match=why):
        renamed(client, uri, position, name)


@pytest.mark.parametrize(
    ("wrong", "right", "code"),
    [
        ("before refund require not find(same order)", "no find(same order)", "TCC232"),
        ("before refund require count(find) = 0", "no find", "TCC235"),
        ("before refund require find(order = order)", "same order", "TCC231"),
        ("before refund require 1 <= amount <= 5", "amount in 1 .. 5", "TCC238"),
        ("before refund require fnd", "find", "TCC202"),
        ("require find before refund", "before refund require find", "TCC242"),
        ("before note require find(same ordr)", "order", "TCC204"),
        ('before note require order ~ "a"', 'order = "a"', "TCC233"),
        ("before note require find within 3 minutes", "m", "TCC101"),
        ("limit note <= 3", None, "TCC225"),
    ],
)
def test_the_text_that_an_error_proposes_is_a_code_action(
    client: Client, file: Path, wrong: str, right: str | None, code: str
) -> None:
    text = f"{POLICY}{wrong}\n"
    uri = client.open(file.as_uri(), text)
    found = client.wait_for(uri, lambda found: code in codes(found))
    where = next(item.range for item in found if item.code == code)
    offers: list[Any] = []
    until = time.monotonic() + 10  # errors of syntax are told before the whole check has ended
    while not offers and right is not None and time.monotonic() < until:
        offers = [one for one in actions(client, uri, where) if one.title.startswith("Write")]
    if right is None:
        assert offers == []
        return
    assert offers[0].title == f"Write {right}  ({code})"
    client.change(uri, changed(text, offers[0].edit.changes[uri]))
    assert client.wait_for(uri, lambda found: code not in codes(found)) is not None


def test_a_keyword_at_its_place_gets_backticks(client: Client, file: Path) -> None:
    text = 'grammar g version "1"\ntool a\ntool b\nplan = a b\nbefore b require a\n'
    uri = client.open(file.as_uri(), text)
    edit = renamed(client, uri, types.Position(line=1, character=5), "not")
    after = changed(text, edit.changes[uri])
    assert "before b require `not`" in after


def test_the_outline_has_tools_with_parameters_rules_and_the_plan(
    client: Client, file: Path
) -> None:
    uri = client.open(file.as_uri(), DESK)
    params = types.DocumentSymbolParams(text_document=client.doc(uri))
    found = client.ask(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, params)
    assert [symbol.name for symbol in found] == ["desk", "look", "write", "looks", "plan", "spare"]
    assert [child.name for child in found[2].children] == ["tone"]
    assert spot(found[1].range) == (1, 0, 1, DESK.split("\n")[1].index("}") + 2)
    assert spot(found[1].selection_range) == (1, 5, 1, 9)


HEAD = """grammar g version "1"
tool look(k: 1 | 2, by: text_ | "a b")
tool `my tool`
rule r = look
"""


@pytest.mark.parametrize(
    ("text", "some", "none"),
    [
        ("§", {"tool", "rule", "limit", "currency"}, {"cost"}),
        ("plan = §", {"look", "`my tool`", "r"}, {"cost"}),
        ("plan = lo§", {"look"}, {"cost"}),
        ("before lo§", {"look", "any"}, {"r", "<"}),
        ("before look require §", {"k", "by", "no", "last"}, {"r", "cost"}),
        ("before look require look §", {"since", "within"}, {"look"}),
        ("limit §", {"depth", "count", "sum", "price"}, {"look", "plans"}),
        ("limit count(§", {"look"}, {"r"}),
        ("limit sum(look.§", {"k"}, {"look", "by"}),
        ("expect §", {"plans", "min_cost", "max_depth"}, {"depth"}),
        ("plan = look(§", {"k", "by"}, {"look", "any"}),
        ("plan = look(k=1, §", {"by"}, {"k", "look"}),
        ("plan = look(k=§", {"1", "2"}, {"look", "k"}),
        ("plan = look(k=1|§", {"1", "2"}, {"look", "k"}),
        ("plan = look(by=§", {"text_", '"a b"'}, {"1"}),
        ("tool x(a: b | c) { §", {"cost", "doc", "bind", "strict"}, {"look", "limit"}),
        ("tool x(a: b | c) { cost 1 when §", {"a"}, {"cost"}),
        ("tool x(a: b | c) { cost 1 when a = §", {"b", "c"}, {"cost", "1"}),
        ("tool x(a: §", {"text", "integer", "number", "flag", "json"}, {"look"}),
        ("tool x { latency 1 §", {"ms", "s"}, {"look"}),
        ("plan = look # §", set(), {"look", "any"}),
        ('tool x { doc "§', set(), {"look", "cost"}),
    ],
)
def test_what_may_stand_at_a_place_is_offered_and_nothing_else(
    client: Client, folder: Path, text: str, some: set[str], none: set[str]
) -> None:
    found = set(offered(client, (folder / "offered.tcg").as_uri(), HEAD + text))
    assert some <= found
    assert not none & found
    assert some or not found


def test_formatting_is_that_of_tcc_fmt_and_leaves_a_broken_text_alone(
    client: Client, file: Path
) -> None:
    text = 'grammar  g version "1"\ntool a # 😀\nplan=a|a a\nlimit depth<=3\n'
    uri = client.open(file.as_uri(), text)
    params = types.DocumentFormattingParams(
        text_document=client.doc(uri), options=types.FormattingOptions(tab_size=8, insert_spaces=True)  # noqa: E501
    )  # fmt: skip
    edits = client.ask(types.TEXT_DOCUMENT_FORMATTING, params)
    assert changed(text, edits) == format_text(text).text
    client.change(uri, format_text(text).text or "")
    assert not client.ask(types.TEXT_DOCUMENT_FORMATTING, params)
    client.change(uri, text + " (")
    assert not client.ask(types.TEXT_DOCUMENT_FORMATTING, params)


def test_a_safe_fix_is_offered_and_gone_is_the_lint(client: Client, file: Path) -> None:
    uri = client.open(file.as_uri(), DESK)
    client.wait_for(uri)
    found = {action.title: action for action in actions(client, uri, line(6, 5))}
    fix = found["Fix TCC702: the meaning stays the same"]
    assert fix.kind == types.CodeActionKind.QuickFix
    after = changed(DESK, fix.edit.changes[uri])
    assert after == DESK.replace("rule spare = look\n", "")
    assert actions(client, uri, line(0)) == () or all(
        action.kind == "source.fixAll.tcc" for action in actions(client, uri, line(0))
    )
    (every,) = actions(client, uri, line(0), ["source.fixAll"])
    assert changed(DESK, every.edit.changes[uri]).count("spare") == 0


@pytest.mark.parametrize(
    ("written", "due"),
    [
        ("rule spare = look", "rule spare = look  # lint: allow TCC702"),
        ("rule spare = look # of 😀 old", "rule spare = look # lint: allow TCC702 of 😀 old"),
        (
            "rule spare = look  # lint: allow TCC701, TCC703 why",
            "rule spare = look  # lint: allow TCC701, TCC703, TCC702 why",
        ),
    ],
)
def test_a_lint_is_allowed_at_the_end_of_its_line(
    client: Client, file: Path, written: str, due: str
) -> None:
    text = DESK.replace("rule spare = look", written)
    uri = client.open(file.as_uri(), text)
    client.wait_for(uri)
    allow = next(a for a in actions(client, uri, line(6, 5)) if a.title == "Allow TCC702 here")
    after = changed(text, allow.edit.changes[uri])
    assert after == DESK.replace("rule spare = look", due)
    client.change(uri, after)
    assert client.wait_for(uri, lambda found: "TCC702" not in codes(found)) is not None


@pytest.mark.parametrize(
    "text",
    [
        "", "\0", "\ufeffgrammar", "{", "<", "grammar", 'tool "', "plan = " + "(" * 500,
        "rule " * 2000, "é😀" * 3000, "limit " * 1500 + "§", "before a require", "use \"\\u0000\"",
        'grammar g version "1"\nuse "../../../etc/passwd"\nplan = a', "\ud800", "tool a(b: " + "c|" * 3000,  # noqa: E501
    ],
    ids=range(16),
)  # fmt: skip
def test_no_text_whatever_ends_the_server(client: Client, folder: Path, text: str) -> None:
    uri = (folder / "hostile.tcg").as_uri()
    client.open(uri, text)
    here = types.Position(line=0, character=5)
    hover(client, uri, here)
    at(client, types.TEXT_DOCUMENT_COMPLETION, types.CompletionParams, uri, here)
    at(client, types.TEXT_DOCUMENT_DEFINITION, types.DefinitionParams, uri, here)
    client.ask(
        types.TEXT_DOCUMENT_DOCUMENT_SYMBOL,
        types.DocumentSymbolParams(text_document=client.doc(uri)),
    )
    with pytest.raises(
        JsonRpcException, match=r"no name here|this is a file|has errors|declares no"
    ):
        renamed(client, uri, here, "other")
    actions(client, uri, line(0))
    before = client.rounds.get(uri, 0)
    client.change(uri, text + "\n")
    client.wait_for(uri, lambda _: client.rounds.get(uri, 0) > before)
    client.close(uri)


def test_positions_outside_a_text_are_its_end(client: Client, file: Path) -> None:
    uri = client.open(file.as_uri(), DESK)
    for position in (types.Position(999_999, 999_999), types.Position(1, 999_999)):
        assert hover(client, uri, position) is None


def test_a_text_that_is_too_large_is_refused_with_its_code(client: Client, file: Path) -> None:
    uri = client.open(file.as_uri(), "#" * (MAX_SOURCE_BYTES + 1))
    assert codes(client.wait_for(uri)) == ["TCC107"]
    assert hover(client, uri, types.Position(0, 1)) is None


def test_a_document_that_is_in_no_file_is_diagnosed_and_can_use_none(client: Client) -> None:
    uri = client.open("untitled:Untitled-1", DESK + 'use "parts.tcg"\n')
    assert "TCC222" in codes(client.wait_for(uri))
    client.close(uri)


def test_without_pygls_the_command_names_the_extra(tmp_path: Path) -> None:
    code = "import sys\nsys.modules['pygls'] = None\nfrom tcc.main import main\nmain(['lsp'])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "install the extra: pip install 'tcc[lsp]'" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "lsp" in COMMANDS
