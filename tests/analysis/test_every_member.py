"""Each member of a core, changed alone: `tcc diff` says which, in which sense, and ends so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

import tcc as library
from tcc_certs.formats.codec import decode
from tcc_certs.formats.schema import Row
from tcc_certs.policy import reader
from tcc_runtime.analysis.gate_changes import joined, member_changes
from tests.cli.conftest import Tcc

TEXT = """grammar desk version "1.0"

tool find(q: a | b, note: text max 9, more?: text max 9) : begun -> found {
  doc "finds"
  quotes same
  cost 0.1 .. 0.5
  price 3
  latency 5 ms
  model cheap { price 1 latency 2 ms epsilon 0.5 }
  model dear {
    price 5
    latency 9 ms
    epsilon 0.5
    adapter "lora"
    execute { price 7 latency 8 ms epsilon 0.25 }
  }
  bind mcp "desk" "find_it"
}
tool look(k: x | y, order: text max 9) gives (seen: yes | no) { errors mean failed }
tool pay(order: text max 9, amount: integer 0 .. 9) { bind python "shop:pay" }
tool idle(m: x | y, o: flag, p: flag) { price 1 }

plan = r look? pay{1,2}
rule r = find

start begun
goal found

limit depth <= 4
before pay require find
before find require no pay since any - pay
limit sum(pay.amount) <= 9
before pay require hour(now, "Europe/Berlin") < 20
"""

# What is put in the place of what; the member that says so; its sense; the exit code.
CHANGES = {
    "a new errors mean failed": (
        "bind python",
        "errors mean failed bind python",
        "errors",
        "wider",
        1,
    ),
    "calls beside others": (
        "{ errors mean failed }",
        "{ errors mean failed parallel }",
        "parallel",
        "wider",
        1,
    ),
    "an open answer": ("yes | no)", "yes | no, by: text)", "answers", "other", 0),
    "a listed answer": ("yes | no)", "yes | no | *)", "values", "wider", 1),
    "what a session is given": (
        "start begun",
        "given by: text\nstart begun",
        "given",
        "incomparable",
        1,
    ),
    "what a session learns": (
        "start begun",
        "given seen from look.seen\nstart begun",
        "given",
        "incomparable",
        1,
    ),
    "a definition": ("start begun", "let paid = pay\nstart begun", "lets", "other", 0),
    "what passes unread": (
        "start begun",
        "pass resources, input\nstart begun",
        "pass",
        "wider",
        1,
    ),
    "errors mean failed is gone": ("{ errors mean failed }", "", "errors", "narrower", 1),
    "answers that are errors": (  # such a read helps no require any more, and uses up no limit
        "errors mean failed }",
        'errors mean failed ~ "E.*" }',
        "error_text",
        "incomparable",
        1,
    ),
    "another tool of the server": ('"find_it"', '"drop_it"', "bind", "incomparable", 1),
    "another server": ('"desk" "find', '"other" "find', "bind", "incomparable", 1),
    "another function": ("shop:pay", "shop:pay_all", "bind", "incomparable", 1),
    "another way of binding": ('mcp "desk" "find_it"', 'python "a:b"', "bind", "incomparable", 1),
    "a binding is gone": ('bind python "shop:pay"', "", "bind", "incomparable", 1),
    "a model's price": ("{ price 1 lat", "{ price 2 lat", "models", "cost", 1),
    "a model's latency": ("latency 2 ms", "latency 1 ms", "models", "cost", 1),
    "a model's epsilon": ("ms epsilon 0.5 }", "ms epsilon 0.4 }", "models", "cost", 1),
    "a model's adapter": ('"lora"', '"rola"', "models", "incomparable", 1),
    "a model's atom": (
        "execute { price 7",
        "execute { atom laplace(1, 1) price 7",
        "models",
        "incomparable",
        1,
    ),
    "what making a call takes": ("{ price 7", "{ price 8", "models", "cost", 1),
    "what making a call tells": ("epsilon 0.25", "epsilon 0.75", "models", "cost", 1),
    "a model makes no calls": (
        "execute { price 7 latency 8 ms epsilon 0.25 }",
        "",
        "models",
        "incomparable",
        1,
    ),
    "a model makes calls": (
        "epsilon 0.5 }\n  model dear",
        "epsilon 0.5 execute { price 1 } }\n  model dear",
        "models",
        "incomparable",
        1,
    ),
    "a model's name": ("model cheap", "model cheaper", "models", "incomparable", 1),
    "a model more": ("bind mcp", "model last { price 9 } bind mcp", "models", "wider", 1),
    "a model less": (
        "model cheap { price 1 latency 2 ms epsilon 0.5 }",
        "",
        "models",
        "narrower",
        1,
    ),
    "a promise of one quote is gone": ("quotes same", "", "quotes", "cost", 1),
    "every answer has a way on": (
        "{ errors mean failed }",
        "{ errors mean failed strict }",
        "strict",
        "narrower",
        1,
    ),
    "a bound": ("amount) <= 9", "amount) <= 10", "statement", "wider", 1),
    "a bound, less": ("amount) <= 9", "amount) <= 8", "statement", "narrower", 0),
    "a statement of the gate more": (
        "limit depth",
        "before pay require no look(same order)\nlimit depth",
        "statement",
        "narrower",
        0,
    ),
    "a statement of the gate less": ("limit sum(pay.amount) <= 9", "", "statement", "wider", 1),
    "a reason": (
        "before pay require find",
        'before pay require find because "First look."',
        "because",
        "other",
        0,
    ),
    "a type of an open parameter": ("note: text max 9", "note: text max 8", "open", "narrower", 0),
    "a type that is wider": (
        "amount: integer 0 .. 9",
        "amount: integer 0 .. 99",  # the sum of all amounts stays at most 9
        "open",
        "other",
        0,
    ),
    "an open parameter that may be left out": (", more?: text max 9", "", "open", "narrower", 0),
    "the order of open parameters": (
        "order: text max 9, amount: integer 0 .. 9",
        "amount: integer 0 .. 9, order: text max 9",
        "open",
        "other",
        0,
    ),
    "an answer less": (" gives (seen: yes | no)", "", "values", "incomparable", 1),
    "an open parameter of an idle tool": ("o: flag", "o: integer", "open", "other", 0),
    "the price of a tool": ("price 3", "price 4", None, "cost", 0),
    "the latency of a tool": ("latency 5 ms", "latency 6 ms", None, "cost", 0),
    "the least cost of a tool": ("0.1 .. 0.5", "0.2 .. 0.5", None, "cost", 0),
    "the greatest cost of a tool": ("0.1 .. 0.5", "0.1 .. 0.6", None, "cost", 0),
    "the epsilon of a tool": ("price 3", "price 3 epsilon 0.5", None, "cost", 0),
    "the price of an idle tool": ("{ price 1 }", "{ price 2 }", "calls", "cost", 0),
    "the values of an idle tool": ("m: x | y", "m: x | y | z", "values", "other", 0),
    "the order of values": ("q: a | b", "q: b | a", "values", "other", 0),
    "a tool more that is idle": ("plan =", "tool more\nplan =", "tool", "other", 0),
    "a tool less that is idle": (
        "tool idle(m: x | y, o: flag, p: flag) { price 1 }",
        "",
        "tool",
        "other",
        0,
    ),
    "the words of a tool": ('doc "finds"', 'doc "seeks"', "doc", "other", 0),
    "no words of a tool": ('doc "finds"', "", "doc", "other", 0),
    "the version": ('"1.0"', '"1.1"', "grammar", "other", 0),
    "the name": ("grammar desk", "grammar disk", "grammar", "other", 0),
    "the signature": ("begun -> found", "begun -> begun", None, "other", 0),
    "start and goal are gone": ("start begun\ngoal found", "", "statement", "other", 0),
    "one goal more": ("goal found", "goal begun | found", "statement", "other", 0),
    "a plan of other words": ("plan = r look?", "plan = find look?", "statement", "other", 0),
    "a rule of other words": (
        "rule r = find",
        "rule r = find | find(q = a)",
        "statement",
        "other",
        0,
    ),
    "a limit more": ("limit depth", "limit count(pay) <= 3\nlimit depth", "statement", "other", 0),
    "a limit less": ("limit depth <= 4", "", "statement", "other", 0),
    "a require less": ("before pay require find", "", "statement", "other", 0),
    "a forbid less": ("before find require no pay since any - pay", "", "statement", "other", 0),
    "the only zone less": (
        'before pay require hour(now, "Europe/Berlin") < 20\n',
        "",
        "statement",
        "wider",
        1,
    ),
    "a plan more": ("pay{1,2}", "pay{0,2}", "statement", "wider", 1),
    "a plan less": ("limit depth <= 4", "limit depth <= 3", "statement", "narrower", 0),
    "a plan more, and one less": ("pay{1,2}", "pay{2,3}", "statement", "incomparable", 1),
}


# Changes of declarations that change no session, with the sense of the declaration.
IN_TEXT = {"an open answer": "incomparable", "a type that is wider": "wider"}
HEADS = {0: "Not breaking", 1: "Breaking", 2: "Not known"}


def changed(name: str) -> str:
    before, after, *_ = CHANGES[name]
    assert TEXT.count(before) == 1, before
    text = TEXT.replace(before, after)
    if name == "the signature":  # where it is goes by the state that is left
        text = text.replace("goal found", "goal begun")
    if name == "start and goal are gone":
        text = text.replace(": begun -> found", "")
    return text


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("old") / "old.tcca"
    library.save(library.compile_text(TEXT), path)
    return path


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.sampled(24)
def test_each_member_alone_is_told_with_its_sense(
    tcc: Tcc,
    old: Path,
    tmp_path: Path,
    name: str,
) -> None:
    _, _, member, sense, code = CHANGES[name]
    new = tmp_path / "new.tcg"
    new.write_text(changed(name))
    found = tcc("diff", old, new, "--json")
    assert (found.code, found.json["verdict"], found.json["breaking"]) == (code, sense, code == 1)
    compared = library.diff(old, new)
    assert compared.verdict == sense
    told: dict[str, list[str]] = {}
    for change in (*compared.statements, *compared.fields, *compared.members):
        told.setdefault(change.of, []).append(change.sense)
    assert told or (compared.calls is not None and compared.calls.amounts)
    if member is not None:
        assert member in told, told
    text, page = tcc("diff", old, new), tcc("diff", old, new, "--format", "markdown")
    assert text.code == page.code == code and text.out.startswith(f"{sense}: ")
    assert page.out.startswith(f"### {HEADS[code]}: {sense}: ")
    if member is not None and member != "statement" and compared.plans == "equal":
        assert joined(told[member]) == IN_TEXT.get(name, sense)
    if member is not None and name != "a model's name":
        shown = f"({joined(told[member])})"
        assert shown in text.out and shown[:-1] in unescape(page.out).replace("\\", "")
    back = tcc("diff", new, old, "--json").json["verdict"]
    assert back == {"wider": "narrower", "narrower": "wider"}.get(sense, sense)


def test_comments_and_layout_are_no_change(tcc: Tcc, old: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.tcg"
    head, _, tail = TEXT.partition("limit depth")
    new.write_text("# said\n" + head.replace("\n", "\n\n") + f"  limit  depth{tail}accept find pay")
    same = tcc("diff", old, new)
    assert same.code == 0 and same.out.startswith("equal: the plans are the same\n")


def test_the_table_has_every_member_of_a_core() -> None:
    before = core_json(TEXT)
    seen: set[str] = set()
    for name in CHANGES:
        seen |= set(paths(before, core_json(changed(name))))
    members = {entry.name for entry in reader._CORE if isinstance(entry, Row)}
    assert members <= seen | {"schema"}, members - seen
    of_tools = {entry.name for entry in reader._TOOL if isinstance(entry, Row)}
    assert {f"tools.{member}" for member in of_tools} <= seen


def core_json(text: str) -> dict[str, Any]:
    found = decode(bytes(library.compile_text(text).file.columns["core"].data), "core")
    assert isinstance(found, dict)
    return found


def paths(old: Any, new: Any) -> Iterator[str]:
    for member in old.keys() | new.keys():
        if old.get(member) != new.get(member):
            yield member
    sides = [{tool["name"]: tool for tool in core["tools"]} for core in (old, new)]
    for name in sides[0].keys() | sides[1].keys():
        one, other = (side.get(name, {}) for side in sides)
        for member in one.keys() | other.keys():
            if one.get(member) != other.get(member):
                yield f"tools.{member}"


@pytest.mark.parametrize(
    ("old", "new", "sense"),
    [
        (["input", "prompts"], ["input"], "narrower"),
        (["input"], ["input", "prompts"], "wider"),
        (["input"], ["prompts"], "incomparable"),
        (["input"], None, "narrower"),
    ],
)
def test_what_passes_is_ordered_by_what_there_is_of_it(
    old: list[str], new: list[str] | None, sense: str
) -> None:
    core = core_json(TEXT)
    after = core if new is None else core | {"pass": new}
    changes = member_changes(core | {"pass": old}, after)
    assert [(change.of, change.sense) for change in changes] == [("pass", sense)]


def test_a_member_that_is_not_known_is_never_equal() -> None:
    core = core_json(TEXT)
    for other in (
        core | {"younger": 1},
        core | {"tools": [core["tools"][0] | {"younger": True}, *core["tools"][1:]]},
    ):
        for pair in ((core, other), (other, core)):
            assert [change.sense for change in member_changes(*pair)] == ["incomparable"]


NAMES = [
    "@name",
    "@org/team",
    "#12",
    "owner/repo#12",
    "GH-12",
    "https://example.org/x",
    "www.example.org",
    "a@example.org",
    "0123abc",
    ":tada:",
    "owner/repo@0123abcdef",
    "mailto:a@b.c",
    "xmpp:a@b.c",
    "<b>",
    "|",
    "`@name`",
    "[x](y)",
    "![x](y)",
    "@na|me",
    "\\\\@name",
    "[^1]",
    "&commat;name",
]


@pytest.mark.parametrize("name", NAMES)
def test_markdown_mentions_nobody_and_links_nowhere(
    tcc: Tcc,
    tmp_path: Path,
    name: str,
) -> None:
    sides = []
    for plan in ("a", "b"):
        sides.append(tmp_path / f"{plan}.tcg")
        sides[-1].write_text(
            f'grammar g version "1"\ntool a(k: "{name}")\ntool b(k: "{name}")\nplan = {plan}'
        )
    page = tcc("diff", *sides, "--format", "markdown").out
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(page)
    shown = re.sub(r"<code>(.*?)</code>", "", rendered)
    for mark in (
        "@",
        "#1",
        "GH-",
        "://",
        "www.",
        ":tada:",
        "0123abc",
    ):
        assert mark not in unescape(shown), shown
    assert not re.search("<(?:a|img|b)[ >]", rendered), rendered
    assert rendered.count("<td>") == 2 * rendered.count("<tr>") - 2
    texts = unescape(re.sub(r"<!-- -->|</?(?:code|td|tr)>", "", rendered)).replace("\\\\", "\\")
    assert name.replace("\\\\", "\\") in texts
