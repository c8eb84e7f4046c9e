"""Each mistake has its code, its place, and the text to write instead."""

from __future__ import annotations

import re

import pytest

from tcc_compiler.language.diagnostics import Diagnostic, render
from tcc_compiler.names.compile import Compiled, compile_source

HEAD = """\
grammar g version "1"
given customer: text
tool find(order: text)
  gives (owner: text, total: number 0 .. 99, status: open | sent, parts: list of text)
tool approve(order: text, amount: number) gives (answer: yes | no)
tool refund(order: text, amount: number 0 .. 500, to: list of text, `count`?: 1 | 2)
tool read(path: text)
"""
LINE = HEAD.count("\n") + 1


def compiled(text: str) -> Compiled:
    return compile_source(HEAD + text)


def shown(found: Compiled) -> str:
    return "\n".join(render(one, found.sources) for one in found.diagnostics)


# Text, code, the text that carets are below, and a part of the hint.
MISTAKES = [
    # The mistakes that language.md lists.
    ("before refund require find(status = opn)", "TCC205", "opn", "did you mean 'open'?"),
    ("before refund require find(status != opn)", "TCC205", "opn", "did you mean 'open'?"),
    ('before refund require find(status = "opn")', "TCC205", '"opn"', "'open'"),
    ("plan = read refund start find", "TCC229", "start", "begin a new line; if a tool is called"),
    ("limit depth <= 3 forbid read", "TCC229", "forbid", "begin a new line"),
    ("before refund require last(find(same order)).status = 5", "TCC205", "5", "open | sent"),
    ("limit count(refund) per order <= 3", "TCC230", "limit count(refund) per order <= 3",
     "write: limit count(refund) per order <= 3 in session, or: limit count(refund) per order"),
    ('limit count(refund within 3 d) <= 3 because "x"', "TCC230",
     'limit count(refund within 3 d) <= 3 because "x"',
     "write: limit count(refund within 3 d) <= 3 in session, or:"),
    ("before refund require find(order = order)", "TCC231", "order = order", "write: same order"),
    ("before refund require not find(same order)", "TCC232", "not find(same order)",
     "write: no find(same order)"),
    ("before refund require not to", "TCC232", "not to", "write: no to"),
    ('forbid read(path ~ "etc")', "TCC233", '"etc"',
     'write: path = "etc"; or for texts that contain it: path ~ ".*etc.*"'),
    ('forbid read(path !~ "etc")', "TCC233", '"etc"',
     'write: path != "etc"; or for texts that contain it: path !~ ".*etc.*"'),
    ('tool t(x: text ~ "abc")', "TCC233", '~ "abc"',
     'write: text "abc"; or for texts that contain it: text ~ ".*abc.*"'),
    ("let order = 3\nbefore refund require order = 4", "TCC234", "order", "this.order"),
    ("let open = \"x\"\nbefore refund require find(status = open)", "TCC234", "open", '"open"'),
    ("let status = \"x\"\nbefore refund require find(status = open)", "TCC234", "status",
     "it.status"),
    ("let find = approve\nbefore refund require find", "TCC234", "find", "rename the `let` find"),
    ("before refund require count(approve) = 0", "TCC235", "count(approve) = 0",
     "write: no approve"),
    ("before refund require count(approve) <= 0", "TCC235", "count(approve) <= 0",
     "write: no approve"),
    ("before refund require count(approve) > 0", "TCC235", "count(approve) > 0",
     "write: approve"),
    ("before refund require 0 < count(approve)", "TCC235", "0 < count(approve)", "write: approve"),
    ("before refund require last(approve)", "TCC236", "last(approve)",
     "write: last(approve).answer = yes, or if any such call is enough: approve"),
    ("before refund require last(find.parts)", "TCC236", "last(find.parts)", "find.parts"),
    ("before refund require last(find(same order)).status", "TCC225",
     "last(find(same order)).status", "write: last(find(same order)).status = open"),
    ("before any - read | find require approve", "TCC237", "any - read | find",
     "write: any - (read | find), or: (any - read) | find"),
    ("before refund require amount + 1 | 2 = 3", "TCC237", "amount + 1 | 2",
     "write: amount + (1 | 2), or: (amount + 1) | 2"),
    ("before refund require 1 <= amount <= 5", "TCC238", "1 <= amount <= 5",
     "write: amount in 1 .. 5"),
    ("before refund require 1 < amount < 5", "TCC238", "1 < amount < 5",
     "write: 1 < amount and amount < 5"),
    ("before refund require every to in find.parts", "TCC239", "every to in find.parts",
     "write: every to(it in find.parts)"),
    ('before refund require every x in to (x != "a")', "TCC239", 'every x in to (x != "a")',
     'write: every to(it != "a")'),
    ('before refund require every x in to: x != "a"', "TCC239",
     "before refund require every x in to:", 'write: every to(it != "a")'),
    ("limit count(refund) <= 3 within 30 d", "TCC240", "3 within 30 d",
     "write: limit count(refund within 30 d) <= 3 in session"),
    ("limit count(refund) per order <= 3 within 30 d across sessions", "TCC240", "3 within 30 d",
     "write: limit count(refund within 30 d) per order <= 3 across sessions"),
    ('forbid find(order = "x") | read', "TCC241", 'find(order = "x")', "(a | b)(FILTER)"),
    ('before refund require find(order = "x") | read', "TCC241", 'find(order = "x") | read',
     'write: (find | read)(order = "x")'),
    ('before any - find(order = "x") require approve', "TCC241", 'find(order = "x")', "(a | b)"),
    ("require find before refund", "TCC242", "require find before refund",
     "write: before refund require find"),
    ("require find(same order) after refund", "TCC242", "require find(same order) after refund",
     "write: before find require refund(same order)"),
    ('forbid refund before approve because "x"', "TCC242", "forbid refund before approve",
     "write: before approve require no refund"),
    ("forbid refund after approve  # no", "TCC242", "forbid refund after approve",
     "write: before refund require no approve"),
    ("require refund after find same order", "TCC242", "require refund after find same order",
     "write: before refund require find(same order)"),
    ("require approve before each refund same order", "TCC242",
     "require approve before each refund same order",
     "write: before refund require unused approve(same order)"),
    # TCC225 in its kinds.
    ("let a = b\nlet b = a", "TCC225", "let a = b", "other names"),
    ("before refund require find = approve", "TCC225", "find",
     "write: last(find(same order)).status = open"),
    ("before refund require find(same order).status = open", "TCC225", "find(same order).status",
     "write: last(find(same order)).status"),
    ("before refund require find.status in open", "TCC225", "find.status", "last(find).status"),
    ("before refund require last(find).status in open", "TCC225", "last(find).status in open",
     "write: last(find).status = open"),
    ("finally require find(same order)", "TCC225", "same order", "before CALLS require"),
    ("before refund require every find", "TCC225", "every find", "every find(..)"),
    ("before refund require to within 3 d", "TCC225", "to within 3 d", "C.field within 30 d"),
    ("before refund require find since (approve within 1 d)", "TCC225", "approve within 1 d", ""),
    ('finally ask "x"', "TCC225", 'ask "x"', "before CALLS ask"),
    ("finally require amount > 3", "TCC225", "amount", "finally require C(field = value)"),
    ("finally require this.amount > 3", "TCC225", "this", ""),
    ("before approve require answer = yes", "TCC225", "answer", "last(approve(..)).answer"),
    ("before refund require unused find", "TCC225", "unused find",
     "write: unused find(same order)"),
    ("before refund require unused approve(answer = yes)", "TCC225", "unused approve(answer = yes)",
     "write: unused approve(same (order, amount), answer = yes)"),
    ("limit count(refund since find) <= 3", "TCC225", "count(refund since find)", "count(CALLS"),
    ("limit sum(refund, amount) <= 3", "TCC225", "sum(refund, amount)", "sum(refund.field)"),
    ("limit count(distinct(refund.order)) <= 3", "TCC225", "count(distinct(refund.order))", ""),
    ("limit refund <= 3", "TCC225", "refund", "limit count(refund) <= n"),
    ("limit latency <= 10", "TCC225", "10", "80 ms"),
    ("limit depth per order <= 10", "TCC225", "per order", "take it away"),
    ("limit latency <= 0.5 ms", "TCC227", "0.5 ms", "round it"),
    ("tool t(k: 1 | 2) { latency 10 + 5 * k }", "TCC225", "10 + 5 * k",
     "write: latency (10 + 5 * k) * 1 ms"),
    ("tool t { latency 10 }", "TCC225", "10", "write: latency 10 ms"),
    ("tool t { cost 3 ms }", "TCC225", "3 ms", "take the unit away"),
    ("before refund require last(find, read).owner = 3", "TCC225", "last(find, read)", "last"),
    ('before refund require amount = "5"', "TCC225", '"5"', "without quotes: 5"),
    ("before refund require order = 5", "TCC225", "5", 'in quotes: "5"'),
    ("before refund require now > 5", "TCC225", "5", "compare it with a time"),
    ("before refund require to = order", "TCC225", "order", "order in LIST"),
    # Names.
    ("before refund require fnd", "TCC202", "fnd", "did you mean 'find'?"),
    ("before refund require ordr = 3", "TCC202", "ordr", "did you mean 'order'?"),
    ("before refund require session.custmer = order", "TCC202", "session.custmer", "'customer'"),
    ("before refund require session = order", "TCC202", "session", "session.customer"),
    ("forbid refnd", "TCC202", "refnd", "did you mean 'refund'?"),
    ("before refund require find(amount > 3)", "TCC204", "amount", "write: this.amount"),
    ("before refund require total > amount", "TCC204", "total",
     "write: last(find(same order)).total"),
    ("before refund require last(find).ownr = order", "TCC204", "last(find).ownr", "'owner'"),
    ("tool find", "TCC201", "find", "rename"),
    ("let x = 1\nlet x = 2", "TCC201", "x", "rename"),
    ("let f(x, x) = 2", "TCC201", "x", "rename"),
    ("before refund { let x = 1 let x = 2 require amount = x }", "TCC201", "x", "rename"),
    ("tool t(k: 1 | 2, k: text)", "TCC201", "k", "rename"),
    ("tool `e\u0301`\ntool `\u00e9`", "TCC201", "`\u00e9`", "write both names alike"),
    ("rule find = read", "TCC206", "find", "rename the rule"),
    ("plan = fnd", "TCC202", "fnd", "'find'"),
    ("plan = find(ordr=x)", "TCC204", "ordr", ""),
    ("plan = find(order=x)", "TCC216", "order", "list its values"),
    ("let old = find(order = \"x\")\nplan = old", "TCC203", "old", "use a `rule`"),
    ("let find = read\nplan = find", "TCC234", "find", "another name"),
    ("shape p (x: object p)", "TCC225", "p", "`json`"),
    ("given x from fnd.owner", "TCC202", "fnd", ""),
    ("given x from find.ownr", "TCC204", "find.ownr", ""),
    # Types.
    ("tool t(x: string)", "TCC316", "string", "write x: text"),
    ('tool t(x: path under "out")', "TCC317", '"out"', "/srv/out"),
    ('tool t(x: url under "https://u@x")', "TCC317", '"https://u@x"', "https://*.example.com/docs"),
    ("tool t(x: text or json)", "TCC317", "json", "different types"),
    ("tool t(x: text or text)", "TCC317", "text", "different types"),
    ("tool t(x: list of text or list of flag)", "TCC317", "list of flag", "at most one list"),
    ("tool t(x: list of (text or path))", "TCC317", "list of (text or path)", "leave one of"),
    ("tool t(x: list of (time or number))", "TCC317", "list of (time or number)", "leave one of"),
    ("tool t(x: a | b or integer)", "TCC317", "integer", "text a | b or integer"),
    ("tool t(x: text or number)\nbefore t require x < 3", "TCC225", "x", ""),
    ("tool t(x: integer or number)\nbefore t require x = \"a\"", "TCC225", '"a"', ""),
    ("tool t(x: integer or path)\nbefore t require x = \"a\"", "TCC205", '"a"', "/srv/out"),
    ("tool t(x: integer or flag)\nbefore t require x ~ \"a.*\"", "TCC225", "x", ""),
    ("tool t(x: text or list of text)\nbefore t require x(it = \"a\")", "TCC202", "x", ""),
    ('tool t(x: time "Europe/Berlin")', "TCC317", '"Europe/Berlin"', "offset"),
    ('before refund require hour(now, "Europa/Berlin") = 3', "TCC205", '"Europa/Berlin"',
     "did you mean 'Europe/Berlin'?"),
    ("tool t(x: number 3 .. 1)", "TCC317", "number 3 .. 1", "smaller"),
    ("tool t(x: text min 3 max 1)", "TCC317", "text min 3 max 1", "smaller"),
    ("tool t(x: integer 0.5 .. 1)", "TCC317", "0.5", "whole"),
    ("tool t(x: 3..1)", "TCC302", "3..1", "smaller"),
    ("tool t(x: 1..1000000)", "TCC303", "1..1000000", "integer 1 .. 1000000"),
    ("tool t(x: 1 | 2 | 1)", "TCC301", "1", "take one"),
    ("tool t(x: a | *)", "TCC317", "a | *", "type"),
    ('tool t(x: text ~ "(?=a)")', "TCC318", '~ "(?=a)"', "look-around"),
    # Paths and URLs.
    ('before read require path under "/srv"', "TCC225", "path", "declare the field as `path`"),
    ('before read require host(path) = "x"', "TCC225", "path", "declare the field as `url`"),
    ('tool t(x: path)\nbefore t require x under "srv"', "TCC205", '"srv"', 'write: "/srv/out"'),
    ('tool t(x: url)\nbefore t require x = "h"', "TCC205", '"h"', "https://example.com/docs"),
    ("tool t(x: url, y: path)\nbefore t require x under y", "TCC225", "y", ""),
    # Syntax.
    ("before refund require a and b or c", "TCC101", "or", "needs brackets"),
    ("before refund require amount == 3", "TCC101", "=", "written '='"),
    ("limit count(refund) = 3", "TCC101", "=", "write: limit count(refund) <= 3"),
    ("limit count(refund) < 3", "TCC101", "<", "write: limit count(refund) <= 3"),
    ("limit count(refund) within 30 d <= 3 in session", "TCC101", "within",
     "limit count(refund within 30 d) <= 3 in session"),
    ("limit count(refund) <= 3 per order", "TCC101", "per",
     "write: limit count(refund) per order <= 3 in session"),
    ("before refund require count distinct(approve.order) <= 2", "TCC101", "distinct",
     "write: count(distinct(approve.order)) <= 2"),
    ("limit 3 refund", "TCC101", "refund", "write: limit count(refund) <= 3"),
    ("before refund approve", "TCC101", "approve", "write: before refund require approve"),
    ("before refund: require approve", "TCC101", ":", "write: before refund require approve"),
    ("before approve forbid refund", "TCC101", "forbid", "write: before refund require approve"),
    ("after approve forbid refund", "TCC101", "forbid", "write: before refund require no approve"),
    ("after find require refund", "TCC101", "require", "write: after find owe refund"),
    ("forbid refund if amount > 3", "TCC101", "if", "write: forbid refund(amount > 3)"),
    ("forbid refund unless approve", "TCC101", "unless", "write: before refund require approve"),
    ("allow refund if approve", "TCC101", "allow", "write: before refund require approve"),
    ("refund requires approve", "TCC101", "refund", "write: before refund require approve"),
    ("before refund require amount between 1 and 5", "TCC101", "between",
     "write: amount in 1 .. 5"),
    ("before refund require amount > 5 && approve", "TCC101", "&", "write `and`"),
    ("before refund require amount > 5 || approve", "TCC101", "|", "write `or`"),
    ('before refund require to contains "x"', "TCC101", "contains", '"x" in to'),
    ("before refund, read require approve", "TCC101", ",", "before refund | read require approve"),
    ("before refund and read require approve", "TCC101", "and",
     "before refund | read require approve"),
    ("before every refund require approve", "TCC101", "refund",
     "write: before refund require approve"),
    ("before * require find", "TCC101", "*", "write: before any require find"),
    ("forbid refund or read", "TCC101", "or", "forbid refund | read"),
    ("forbid amount > 300", "TCC101", ">", "forbid CALLS(amount > 300)"),
    ("after refund read", "TCC101", "read", "write: after refund owe read"),
    ("finally approve", "TCC101", "approve", "write: finally require approve"),
    ("before refund require amount > 100 implies approve", "TCC101", "implies",
     "write: before refund(amount > 100) require approve"),
    ("before refund require if amount > 100 then approve", "TCC101", "amount",
     "write: before refund(amount > 100) require approve"),
    ("before refund require exists approve", "TCC101", "approve", "write: approve"),
    ('before refund require all to(it = "x")', "TCC101", "to", 'write: every to(it = "x")'),
    ("before refund require last find(same order)", "TCC101", "find",
     "write: last(find(same order)).field = value"),
    ('before read require path starts with "/srv"', "TCC101", "starts", 'write: path ~ "/srv.*"'),
    ("before refund require approve(same order and answer = yes)", "TCC101", "and",
     "same order, answer = yes"),
    ("before refund require approve(same order) within 1 week", "TCC101", "week", "write: 7 d"),
    ("limit count(refund) per order per to <= 3 in session", "TCC101", "per", "per order, to"),
    ("limit count(refund) <= 3 per session", "TCC101", "per",
     "write: limit count(refund) <= 3 in session"),
    ('before refund ask " "', "TCC225", 'ask " "', 'ask "finance"'),
    ("limit sum(amount) <= 500", "TCC225", "sum(amount)", "sum(CALLS.amount)"),
    ("before refund require len(to) <= 3", "TCC202", "len", "write: count(LIST)"),
    ("before refund require last(find).status = open or sent", "TCC202", "sent",
     "status = a | sent"),
    ("before refund require amount = 1 or 2", "TCC225", "2", "f = a | 2"),
    ("tool t(k: 1 | 2) { cost 1 if k = 2 }", "TCC101", "if", "write: cost 1 when k = 2"),
    ("tool t(k: 1 | 2) { cost 2 ** k }", "TCC101", "*", "no power"),
    ("tool t { cost: 1 }", "TCC101", ":", "write: cost 0.5"),
    ("tool t { cost 1 } -- a comment", "TCC102", "-- a comment", "comments start with '#'"),
    ("plan = find -- a comment", "TCC102", "-- a comment", "comments start with '#'"),
    ("tool t { cost 1 -- comment\n}", "TCC204", "comment", "comments start with '#'"),
    ("plan = find\ntoool b { cost 1 }", "TCC101", "toool", "Write: tool b { cost 1 }"),
    ("plan = find\nlimti depth <= 3", "TCC101", "limti", "Write: limit depth <= 3"),
    ("limit count(refund) >= 3", "TCC101", ">=", "finally require count(..) >= n"),
    ("limit count(refund within 3 days) <= 3", "TCC101", "days", "write 'd'"),
    ("forbid find refund", "TCC101", "refund", "before refund require no find since any - find"),
    ("forbid find with refund", "TCC101", "with", "both directions"),
    ("before refund require find unless approve", "TCC101", "unless", "EXCEPTION or CONDITION"),
    ("no refund before approve", "TCC242", "no refund before approve",
     "write: before approve require no refund"),
    ("approve before refund", "TCC242", "approve before refund",
     "write: before refund require approve"),
    ("before refund require find same order", "TCC101", "same", "find_order(same order)"),
    ("before refund require (find", "TCC114", "(", "write ')'"),
    ("before refund { require find", "TCC114", "{", "write '}'"),
    ("before refund require find)", "TCC114", ")", "take it away"),
    ("limt depth <= 3", "TCC101", "limt", "did you mean 'limit'?"),
    ("require find", "TCC101", "require", "before CALLS require CONDITION"),
    ("plan = find, read", "TCC101", ",", "side by side"),
    ("tool t(; x: text)", "TCC102", ";", "nothing ends with ';'"),
    ('forbid read(path = "x)', "TCC103", '"x)', "end it with"),
    ("forbid `read", "TCC103", "`read", "end it with '`'"),
    ('forbid read(path = "\\ud800")', "TCC104", '"\\ud800"', "both halves"),
    ("before refund require " + "9" * 1001 + " = 3", "TCC105", "9" * 1001, "shorter"),
    ("use \"nowhere.tcg\"", "TCC222", '"nowhere.tcg"', "write its tools into the text"),
    ("start here", "TCC210", "start here", "goal STATE"),
    ("pass logging", "TCC228", "logging", "resources"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "marked", "hint"), MISTAKES)
def test_a_mistake_has_its_code_its_place_and_its_correction(
    text: str, code: str, marked: str, hint: str
) -> None:
    found = compiled(text + "\n")
    assert found.core is None
    assert [one.code for one in found.diagnostics] == [code], shown(found)
    one = found.diagnostics[0]
    assert _marked(found, one) == marked, shown(found)
    assert hint in (one.hint or ""), shown(found)


def _marked(found: Compiled, one: Diagnostic) -> str:
    span = one.span
    assert span is not None
    assert span.line >= LINE
    source = found.sources[span.file]
    start = source.starts[span.line - 1] + span.column - 1
    end = source.starts[span.end_line - 1] + span.end_column - 1
    return source.text[start:end]


# What is written instead compiles.
CORRECTED = [
    ("before refund require find(status = open)", 1),
    ("limit count(refund) per order <= 3 in session", 1),
    ("limit count(refund within 3 d) <= 3 across sessions", 1),
    ("before refund require find(same order)", 1),
    ("before refund require no find(same order)", 1),
    ('forbid read(path ~ ".*etc.*")', 1),
    ("let order = 3\nbefore refund require this.order = \"4\"", 1),
    ("before refund require no approve", 1),
    ("before any - (read | find) require approve", 1),
    ("before (any - read) | find require approve", 1),
    ("before refund require amount in 1 .. 5", 1),
    ("before refund require 1 < amount and amount < 5", 1),
    ("before refund require every to(it in find.parts)", 1),
    ("limit count(refund within 30 d) <= 3 in session", 1),
    ('forbid (find | read)(true)', 1),
    ("before refund require find", 1),
    ("before refund require no approve", 1),
    ("plan = find `start`\ntool `start`", 0),
    ("tool t(k: 1 | 2) { latency (10 + 5 * k) * 1 ms }", 0),
    ("before refund { require find require approve }", 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "statements"), CORRECTED)
def test_what_is_to_be_written_instead_compiles(text: str, statements: int) -> None:
    found = compiled(text + "\n")
    assert found.core is not None, shown(found)
    assert len(found.core.statements) == statements


def test_one_run_reports_the_mistakes_of_all_statements() -> None:
    lines = ("require find before refund", "limt depth <= 3", "forbid (read", "limit depth = 3")
    found = compiled("\n".join([*lines, "plan = find ,"]) + "\n")
    assert [(one.code, one.span and one.span.line) for one in found.diagnostics] == [
        ("TCC242", LINE), ("TCC101", LINE + 1), ("TCC114", LINE + 2), ("TCC101", LINE + 3),
        ("TCC101", LINE + 4),
    ]  # fmt: skip


def test_a_message_names_what_fits() -> None:
    found = compiled("limit depth 3\n")
    assert found.diagnostics[0].message == (
        "found '3'; expected 'per', '(', '.', '<=' or an operator"
    )
    found = compiled("tool t(\n")
    assert found.diagnostics[0].code == "TCC114"
    found = compiled("let x =\n")
    assert found.diagnostics[0].message.startswith("found the end of the text; expected a name")


def test_every_mistake_of_the_design_has_a_test() -> None:
    tested = {code for _, code, _, _ in MISTAKES}
    assert {f"TCC{number}" for number in range(229, 243)} <= tested


def test_each_text_to_write_instead_compiles() -> None:
    tried = 0
    for text, _, _, _ in MISTAKES:
        hint = compiled(f"{text}\n").diagnostics[0].hint or ""
        meant = re.split(", or|; |, if", hint.partition("rite: ")[2])[0]
        if meant.split(" ")[0] not in ("before", "forbid", "after", "limit"):
            continue
        if "<= n" in meant or "80 ms" in meant or not meant.isascii() or ".." in meant:
            continue
        found = compiled(
            f"limit depth <= 9\n{meant}\n".replace("limit depth <= 9\nlimit depth", "limit depth")
        )
        assert found.core is not None, (text, meant, shown(found))
        tried += 1
    assert tried >= 25
