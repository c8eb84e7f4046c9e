"""Entries: what a ledger has of each value follows from the uses of its field."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.policy import nodes
from tcc_certs.policy.core import Core
from tcc_certs.policy.meaning import policy_of
from tcc_certs.policy.uses import Uses
from tcc_certs.session.entries import Entries, EntryReader, EntryWriter, canonical_bytes, state_of
from tcc_certs.values.canonical import digest, key_commitment, record_key, record_mac
from tcc_certs.values.fields import UnionType
from tcc_certs.values.places import NONE, UNKNOWN, State
from tcc_compiler.names.compile import compile_source
from tests.oracle_session.writer import KEY, SessionWriter, artifact_of

BASE = """grammar t version "1"
given who?: text
given vip?: flag
given level?: low | high
given user from login.user
given home?: path
tool login gives (user: text, team: red | blue | *)
tool find(order: text, tags?: list max 9 of text,
          spot?: object (x: number, y?: number, c: on | off))
  gives (owner: text, total: number, at?: time, items?: list of (sku: text, price?: number),
         note?: text or null, state: open | closed | *, codes?: list of number)
tool pay(order: text, amount: number 0 .. 500, part: half | full, urgent?: flag,
         memo?: text or null, tags?: list max 9 of text, file?: path, link?: url or null,
         files?: list max 9 of path, ref?: text or number or null,
         refs?: list max 9 of (text or number), deep?: object (a: text) or flag)
"""


def core_of(text: str) -> Core:
    """The core of a grammar."""
    head = "" if text.startswith("grammar") else 'grammar t version "1"\n'
    compiled = compile_source(head + text)
    assert compiled.core is not None, compiled.diagnostics
    return compiled.core


def forms(statement: str) -> Entries:
    """The forms of a core with statements."""
    core = core_of(f"{BASE}\n{statement}")
    return Entries(core, Uses(core, policy_of(core).rules))


def members(entries: Entries, tool: str, name: str) -> Any:
    """The members that an entry of a field has; None: there is no entry."""
    form = {**entries.arguments(tool), **entries.answers(tool)}.get(name)
    return None if form is None else shape(form)


def shape(form: Any) -> Any:
    found = ["digest"] * form.digest + ["value"] * (form.value or form.type is None)
    found += ["type"] * isinstance(form.type, UnionType)
    found += [*form.patterns, *[f"under {text}" for _, text in form.scopes]]
    found += ["size"] * form.size
    if form.of is not None:
        found.append({"each": shape(form.of)})
    if form.members is not None:
        found.append({member.name: shape(member) for member in form.members})
    return found


USES: list[tuple[str, str, str, Any]] = [
    # Not at all.
    ("", "pay", "order", ["digest"]),
    ("", "find", "owner", None),
    # Orders, arithmetic, aggregates, clocks.
    ("before pay require amount < 5", "pay", "amount", ["digest", "value"]),
    ("before pay require amount in 1 .. 5", "pay", "amount", ["digest", "value"]),
    ("before pay require amount in 1 .. last(find).total", "find", "total", ["digest", "value"]),
    ("before pay require amount in last(find).total .. 9", "find", "total", ["digest", "value"]),
    ("before pay require amount + 1 = 5", "pay", "amount", ["digest", "value"]),
    ("before pay require sum(find.total) < 5", "find", "total", ["digest", "value"]),
    ("before pay require max(find.total) < 5", "find", "total", ["digest", "value"]),
    ("before pay require hour(last(find).at) = 5", "find", "at", ["digest", "value"]),
    ("limit sum(pay.amount) <= 5", "pay", "amount", ["digest", "value"]),
    ("limit count(pay) <= last(find).total", "find", "total", ["digest", "value"]),
    # Equality with a computed term.
    ("before pay require last(find).total = amount * 2", "find", "total", ["digest", "value"]),
    ("before pay require last(find).at = now", "find", "at", ["digest", "value"]),
    ("before pay require match last(find).total { 1: amount, else: amount + 1 } = 3", "pay",
     "amount", ["digest", "value"]),
    # Equality.
    ("before pay require amount = 5", "pay", "amount", ["digest"]),
    ("before pay require find(same order)", "find", "order", ["digest"]),
    ("before pay require last(find).owner = session.who", "find", "owner", ["digest"]),
    ("before pay require amount in last(find).codes", "find", "codes", [{"each": ["digest"]}]),
    ("before pay require count(distinct(find.owner)) < 2", "find", "owner", ["digest"]),
    ("before pay require urgent", "pay", "urgent", ["digest"]),
    ("limit count(pay) per urgent <= 2 in session", "pay", "urgent", ["digest"]),
    ("before pay require last(find).total = amount", "find", "total", ["digest"]),
    ("before pay require match last(find).owner { \"a\": 1, else: 2 } = amount", "find", "owner",
     ["digest"]),
    # Presence and null.
    ("before pay require last(find).at = null", "find", "at", []),
    ("before pay require last(find).note = null", "find", "note", ["digest"]),
    ("before pay require memo != null", "pay", "memo", ["digest"]),
    ("before pay require count(find.owner) < 3", "find", "owner", []),
    # Patterns.
    ("before pay require order ~ \"b.*\" or order ~ \"a.*\"", "pay", "order",
     ["digest", "a.*", "b.*"]),
    ("before pay require last(find).note ~ \"x.*\"", "find", "note", ["digest", "x.*"]),
    # Paths and URLs.
    ('before pay require file under "/b" or file not under "/a"', "pay", "file",
     ["digest", "under /a", "under /b"]),
    ('before pay require link under "https://*.h/" and link ~ "a.*"', "pay", "link",
     ["digest", "a.*", "under https://*.h/"]),
    ("before pay require file under session.home", "pay", "file", ["digest", "value"]),
    ('before pay require host(link) = "h"', "pay", "link", ["digest", "value"]),
    ('before pay require file = "/a"', "pay", "file", ["digest"]),
    ('before pay require every files(it under "/a")', "pay", "files",
     ["digest", {"each": ["digest", "under /a"]}]),
    # Values of one of several types.
    ("", "pay", "ref", ["digest", "type"]),
    ("before pay require ref = 5", "pay", "ref", ["digest", "type"]),
    ("before pay require ref ~ \"a.*\"", "pay", "ref", ["digest", "type", "a.*"]),
    ("before pay require no pay(same deep)", "pay", "deep", ["digest", "type"]),
    ("before pay require every refs(it = 5)", "pay", "refs",
     ["digest", {"each": ["digest", "type"]}]),
    ("limit count(pay) per ref <= 2 across sessions", "pay", "ref", ["digest", "value", "type"]),
    # Lists and objects.
    ("before pay require count(last(find).items) < 3", "find", "items", ["size"]),
    ("before pay require no last(find).items", "find", "items", ["size"]),
    ("before pay require every tags(it ~ \"x.*\")", "pay", "tags",
     ["digest", {"each": ["digest", "x.*"]}]),
    ("before pay require no last(find).items(price > 9)", "find", "items",
     [{"each": [{"price": ["digest", "value"]}]}]),
    ("before pay require count(last(find).items.price) < 9", "find", "items",
     [{"each": [{"price": []}]}]),
    ("before pay require last(find).items(sku = \"s\")", "find", "items",
     [{"each": [{"sku": ["digest"]}]}]),
    ("before pay require no find(spot.x > 3)", "find", "spot",
     ["digest", {"x": ["digest", "value"]}]),
    ("before pay require no find(spot.c = on)", "find", "spot", ["digest", {"c": ["value"]}]),
    ("before pay require last(find).tags = tags", "find", "tags", ["digest", {"each": ["digest"]}]),
    # Limits across sessions.
    ("limit count(pay) per order <= 2 across sessions", "pay", "order", ["digest", "value"]),
    # Through definitions, unions, learned attributes and `unused`.
    ("let o = last(find)\nbefore pay require o.total >= 3", "find", "total", ["digest", "value"]),
    ("before pay require count(distinct(find.owner | login.user)) < 3", "login", "user",
     ["digest"]),
    ("before pay require session.user = \"ann\"", "login", "user", ["digest"]),
    ("before pay require unused find(same order)", "find", "order", ["digest"]),
    ("after find(total > 3) owe pay(same order)", "find", "total", ["digest", "value"]),
    ("after find owe pay(amount = this.total)", "find", "total", ["digest"]),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "tool", "name", "expected"), USES)
def test_an_entry_has_what_its_uses_need(
    statement: str, tool: str, name: str, expected: Any
) -> None:
    entries = forms(statement)
    assert members(entries, tool, name) == expected


def test_several_uses_need_all_of_their_parts() -> None:
    entries = forms(
        'before pay require order = "x"\nbefore pay require order ~ "y.*"\n'
        "before pay require count(last(find).items) < 3\n"
        "before pay require no last(find).items(price > 9)"
    )
    assert members(entries, "pay", "order") == ["digest", "y.*"]
    assert members(entries, "find", "items") == [{"each": [{"price": ["digest", "value"]}]}]


def test_the_owner_shows_values_of_fields() -> None:
    core = core_of(BASE)
    shown = frozenset({("pay", "order"), ("find", "items")})
    entries = Entries(core, Uses(core, policy_of(core).rules), shown)
    assert members(entries, "pay", "order") == ["digest", "value"]
    assert members(entries, "find", "items") == ["digest", "value"]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("before pay require order = \"x\" | \"y\"", ["s:x", "s:y"]),
        ("before pay require amount = 5", ["n:5"]),
        ("before pay require urgent", ["b:true"]),
        ("before pay require last(find).at = \"2026-01-01\"", ["t:1767225600000"]),
        ("before pay require memo = null", ["z:"]),
        ("before pay require file = \"/a/..\" or link = \"http://H:80\"", ["p:/", "u:http://h/"]),
        ("before pay require file under \"/a\"", []),
        ("before pay require order = null", []),
        ("before pay require amount < 5", []),
        ("before pay require part = half", []),
        ("before pay require last(find).state = order", ["s:closed", "s:open"]),
        ("before pay require last(find).state = open", []),
        ("before pay require count(distinct(login.team | login.user)) < 3", ["s:blue", "s:red"]),
        ("before pay require session.user = \"ann\"", ["s:ann"]),
        ("before pay require session.who = \"ann\" and session.vip", ["b:true", "s:ann"]),
        ("before pay require match order { \"a\": 1, else: 2 } = amount", ["n:1", "n:2", "s:a"]),
    ],
)  # fmt: skip
def test_the_header_has_the_constants_that_are_compared_with_digests(
    statement: str, expected: list[str]
) -> None:
    found = [canonical_bytes(state) for state in forms(statement).constants]
    assert [f"{kind.decode()}:{data.decode()}" for kind, data in found] == expected


def test_time_is_used_by_windows_deadlines_asks_and_now() -> None:
    def timed(statement: str) -> bool:
        return forms(statement).uses.timed

    assert not timed("before pay require find(same order)")
    core = core_of(BASE)
    asking = replace(core, statements=(nodes.Ask(on=nodes.Word("pay"), who="lead"),))
    assert Uses(asking, policy_of(asking).rules).timed
    assert timed("before pay require find within 1 h")
    assert timed("before pay require count(find.owner within 1 h) < 3")
    assert timed("before pay require hour(now) < 9")
    assert timed("after find owe pay within 1 h")
    assert timed("limit count(pay within 1 d) <= 3 in session")


# Canonical bytes, digests and MACs, as the text has them.

VECTORS: list[tuple[State, str, str]] = [
    (("s", "ord-1"), "s:ord-1", "e7cc9d04c0096fcfa9e35c92e7c8156f4459380f2f91631bec22183671f2df1e"),
    (("n", 5), "n:5", "b51b8ecbdd87c52b15da50f060bb4a7c1f3b006665bfa64068ba028f9f84c2be"),
    (("b", True), "b:true", "9544d03d1aaa90970cd8cb27c3f64e91061e8c13ec50cb59a1873dce65fdc18a"),
    (("t", 1767225600000), "t:1767225600000",
     "81ffedc0e5b699d37a3f2cf7c85955a671e97e82236392d21fb2f258c9482f46"),
    (("r", (("sku", ("s", "s")), ("price", ("n", 3)), ("no", NONE))), 'j:{"price":3,"sku":"s"}',
     "6d587bab43d803548d910fcf58bde99ab7a0b919bff20adfe5331bfc650fb98b"),
    (("p", "/srv/out"), "p:/srv/out",
     "cb56c5275cb9bdd7064aa59c83534bc5a322df33d14ebc9acd4084f4d6adc79c"),
    (("u", "https://example.com/"), "u:https://example.com/",
     "363911f3816e2930070076e140457e9df0b4c27cebbf5d430cfbb86657cea49d"),
    (("z", None), "z:", "40786bb51baa485211e2988bbdf35c8644935e2b863d1dbef92763385cba11e6"),
]  # fmt: skip


@pytest.mark.parametrize(("state", "text", "expected"), VECTORS)
def test_digests_are_those_of_the_text(state: State, text: str, expected: str) -> None:
    kind, data = canonical_bytes(state)
    assert f"{kind.decode()}:{data.decode()}" == text
    assert digest(KEY, kind, data).hex() == expected


def test_the_commitment_and_the_mac_are_those_of_the_text() -> None:
    assert key_commitment(KEY).hex() == (
        "796c4081dfa12e8ada322a588d15c2732b587824cf30d38588bed5a13dad4651"
    )
    derived = record_key(KEY)
    assert derived.hex() == "c9cfe6e4cf1a400690e9f510cf7cd458e47ad38b3c0d3ef1b2f28c53c1038518"
    body = b'{"code":"R202","kind":"refusal","statement":3,"tool":"refund"}'
    mac = record_mac(derived, bytes(range(32, 64)), body)
    assert mac.hex() == "4844a4b9dbd600593d1ab582627ee596"


# Reading.

SHOWING = (
    'before pay require ref = null or ref = 1 or ref ~ "x.*"\n'
    "before pay require refs = null or every refs(it = 1)\n"
    'before pay require (file = null or file under "/a" or file under "/b") and link = null\n'
    'before pay require amount > 1 and order ~ "a.*" and order = "b" and memo = null\n'
    'before pay require every tags(it = "t") and count(last(find).items) < 3\n'
    "before pay require no last(find).codes(it = 1)\n"
    "before pay require no find(spot.c = on and spot.y = 2)\n"
    "before pay require session.level = high and session.vip"
)
GOOD: dict[str, State] = {
    "order": ("s", "abc"), "amount": ("n", 7), "part": ("s", "half"), "urgent": NONE,
    "memo": ("z", None), "tags": ("l", (("s", "t"), ("s", "u"))), "file": ("p", "/b/c"),
    "link": NONE, "files": NONE, "ref": ("s", "xy"), "refs": NONE, "deep": NONE,
}  # fmt: skip


def reading(key: bytes | None = None) -> tuple[EntryWriter, EntryReader]:
    entries = forms(SHOWING)
    writer = EntryWriter(entries, KEY)
    return writer, EntryReader(entries, writer.constants(), key)


def entry(writer: EntryWriter, **states: State) -> dict[str, Any]:
    """The member `open` of a payment; it can be changed."""
    found: dict[str, Any] = json.loads(json.dumps(writer.arguments("pay", {**GOOD, **states})))
    return found


def refused(reader: EntryReader, found: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(Rejected) as refusal:
        reader.arguments("pay", found)
    return refusal.value.code.value, refusal.value.path


def test_entries_are_written_as_the_table_says() -> None:
    writer, _ = reading()
    found = entry(writer)
    assert found.keys() == {"order", "amount", "memo", "tags", "file", "ref"}
    assert found["ref"] == {"digest": writer.digest(("s", "xy")), "type": "s", "like": "1"}
    assert entry(writer, ref=("n", 1))["ref"]["type"] == "n"
    assert entry(writer, ref=("z", None))["ref"]["type"] == "z"
    assert entry(writer, deep=("j", b'{"a":"b"}'))["deep"]["type"] == "j"
    assert found["file"] == {"digest": writer.digest(("p", "/b/c")), "under": "01"}
    assert found["order"].keys() == {"digest", "like"} and found["order"]["like"] == "1"
    assert found["amount"]["type"] == "n" and found["amount"]["value"] == "7"
    assert found["memo"] == {"digest": writer.digest(("z", None))}
    halves = [writer.digest(("s", text))[:32] for text in "tu"]
    assert found["tags"]["of"] == [{"digest": half} for half in halves]
    assert found["tags"]["digest"] == writer.digest(GOOD["tags"])


def test_equal_values_have_equal_states_and_constants_are_themselves() -> None:
    writer, reader = reading()
    states = reader.arguments("pay", entry(writer))
    again = reader.arguments("pay", entry(writer))
    assert states["order"] == again["order"] and states["order"][0] == "d"
    assert reader.arguments("pay", entry(writer, order=("s", "b")))["order"] == ("s", "b")
    assert states["memo"] == ("z", None)
    assert states["tags"][1][0] == ("s", "t") and states["tags"][1][1][0] == "d"
    assert states["urgent"] == NONE
    assert states["amount"][1].value == ("n", 7)


def test_answers_are_known_unknown_or_absent() -> None:
    writer, reader = reading()
    answers: dict[str, State] = {
        "owner": ("s", "o"), "total": ("n", 1), "at": NONE, "note": NONE, "state": ("s", "open"),
        "items": ("l", (("r", (("sku", ("s", "a")), ("price", NONE))),)), "codes": UNKNOWN,
    }  # fmt: skip
    found, seen = writer.answers("find", answers)
    assert found == {"items": {"size": 1}, "codes": {"unknown": True}}
    assert seen == answers
    states = reader.answers("find", found)
    assert len(states["items"][1]) == 1 and states["codes"] == UNKNOWN


def test_attributes_have_entries_by_name() -> None:
    writer, reader = reading()
    given: dict[str, State] = {
        "who": ("s", "ann"), "home": NONE, "vip": ("b", True), "level": ("s", "low"),
    }  # fmt: skip
    found: Any = writer.given(given)
    assert found["level"] == {"value": "low"} and found["who"].keys() == {"digest"}
    states = reader.given(found)
    assert (states["vip"], states["level"]) == (("b", True), ("s", "low"))
    with pytest.raises(Rejected, match=r"^S101 at given: "):
        reader.given({"user": {"digest": "0" * 64}})
    with pytest.raises(Rejected, match=r"^S203 at given: session.level"):
        reader.given({"level": {"value": "middle"}})


MALFORMED: list[tuple[str, Any, str]] = [
    ("order", {"like": "1"}, "S203"),
    ("order", {"digest": "0" * 64}, "S203"),
    ("order", {"digest": "0" * 63, "like": "1"}, "S203"),
    ("order", {"digest": "A" * 64, "like": "1"}, "S203"),
    ("order", {"digest": "0" * 64, "like": "2"}, "S203"),
    ("order", {"digest": "0" * 64, "like": "11"}, "S203"),
    ("order", {"digest": "0" * 64, "like": "1", "size": 1}, "S203"),
    ("order", {"digest": "0" * 64, "like": "1", "type": "s", "value": "x"}, "S203"),
    ("order", "x", "S203"),
    ("ref", {"digest": "0" * 64, "like": "1"}, "S203"),
    ("ref", {"digest": "0" * 64, "type": "b", "like": "1"}, "S204"),
    ("ref", {"digest": "0" * 64, "type": 5, "like": "1"}, "S204"),
    ("refs", {"digest": "0" * 64, "of": [{"digest": "0" * 32, "type": "z"}]}, "S204"),
    ("file", {"digest": "0" * 64}, "S203"),
    ("file", {"digest": "0" * 64, "under": "0"}, "S203"),
    ("file", {"digest": "0" * 64, "under": "0?"}, "S203"),
    ("file", {"digest": "0" * 64, "like": "01"}, "S203"),
    ("amount", {"digest": "0" * 64}, "S203"),
    ("amount", {"digest": "0" * 64, "type": "n"}, "S203"),
    ("amount", {"digest": "0" * 64, "type": "s", "value": "7"}, "S204"),
    ("amount", {"digest": "0" * 64, "type": "n", "value": "7.0"}, "S204"),
    ("amount", {"digest": "0" * 64, "type": "n", "value": "501"}, "S204"),
    ("amount", {"digest": "0" * 64, "type": "n", "value": 7}, "S203"),
    ("amount", {"digest": "0" * 64, "type": "z", "value": ""}, "S204"),
    ("tags", {"digest": "0" * 64}, "S203"),
    ("tags", {"digest": "0" * 64, "size": 2}, "S203"),
    ("tags", {"digest": "0" * 64, "of": {}}, "S203"),
    ("tags", {"digest": "0" * 64, "of": ["0" * 32]}, "S203"),
    ("tags", {"digest": "0" * 64, "of": [{"digest": "0" * 64}]}, "S203"),
    ("tags", {"digest": "0" * 64, "of": [{"digest": "0" * 32}] * 10}, "S204"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "other", "code"), MALFORMED)
def test_a_malformed_entry_is_refused(name: str, other: Any, code: str) -> None:
    writer, reader = reading()
    assert refused(reader, {**entry(writer), name: other}) == (code, f"open: pay.{name}")


def test_required_arguments_have_entries_and_only_declared_ones() -> None:
    writer, reader = reading()
    found = entry(writer)
    lacking = {name: one for name, one in found.items() if name != "order"}
    assert refused(reader, lacking) == ("S203", "open")
    assert refused(reader, {**found, "part": {"digest": "0" * 64}}) == ("S203", "open")
    reader.arguments("pay", {name: one for name, one in found.items() if name != "tags"})


def test_a_text_always_has_the_same_mark() -> None:
    writer, reader = reading()
    found = entry(writer)
    reader.arguments("pay", found)
    found["order"]["like"] = "0"
    assert refused(reader, found) == ("S205", "open: pay.order")
    constant = entry(writer, order=("s", "b"))
    constant["order"]["like"] = "1"
    assert refused(reader, constant) == ("S205", "open: pay.order")


def test_a_value_always_has_the_same_type() -> None:
    writer, reader = reading()
    reader.arguments("pay", entry(writer))
    other = entry(writer)
    other["ref"]["type"] = "n"
    assert refused(reader, other) == ("S205", "open: pay.ref")
    constant = entry(writer, ref=("n", 1))
    constant["ref"]["type"] = "s"
    assert refused(reader, constant) == ("S205", "open: pay.ref")


def test_a_path_always_has_the_same_mark() -> None:
    writer, reader = reading()
    found = entry(writer)
    reader.arguments("pay", found)
    found["file"]["under"] = "11"
    assert refused(reader, found) == ("S205", "open: pay.file")


def test_shown_values_and_digests_belong_together() -> None:
    writer, reader = reading()
    reader.arguments("pay", entry(writer))
    other = entry(writer, amount=("n", 8))
    stolen = entry(writer)
    stolen["amount"]["digest"] = other["amount"]["digest"]
    assert refused(reader, stolen) == ("S205", "open: pay.amount")
    reader.arguments("pay", other)
    changed = entry(writer)
    changed["amount"]["value"] = "8"
    assert refused(reader, changed) == ("S205", "open: pay.amount")
    halved = entry(writer)
    halved["amount"]["digest"] = halved["amount"]["digest"][:32] + "0" * 32
    assert refused(reader, halved) == ("S205", "open: pay.amount")


def test_with_the_key_digests_are_derived() -> None:
    writer, reader = reading(KEY)
    reader.arguments("pay", entry(writer))
    forged = entry(writer, amount=("n", 9))
    forged["amount"]["digest"] = "0" * 64
    assert refused(reader, forged) == ("S205", "open: pay.amount")
    constants = writer.constants()
    with pytest.raises(Rejected, match=r"^S205 at constants: "):
        EntryReader(forms(SHOWING), ["0" * 64, *constants[1:]], KEY)
    with pytest.raises(Rejected, match=r"^S101 at constants: "):
        EntryReader(forms(SHOWING), constants[1:], None)


def test_a_shown_list_agrees_with_its_elements() -> None:
    core = core_of(f"{BASE}\n{SHOWING}")
    shown = frozenset({("pay", "tags")})
    entries = Entries(core, Uses(core, policy_of(core).rules), shown)
    writer = EntryWriter(entries, KEY)
    reader = EntryReader(entries, writer.constants(), None)
    found = entry(writer)
    assert found["tags"]["value"] == '["t","u"]'
    reader.arguments("pay", found)
    for of in ([found["tags"]["of"][0]], found["tags"]["of"][::-1]):
        forged = {**found, "tags": {**found["tags"], "of": of}}
        assert refused(reader, forged) == ("S205", "open: pay.tags")
    forged = {**found, "tags": {**found["tags"], "value": '["t", "u"]'}}
    assert refused(reader, forged) == ("S204", "open: pay.tags")


def test_lists_of_a_record_have_a_bound() -> None:
    text = 'tool a(k: text, l: list of list of text)\nbefore a require every l(no it(it = "x"))'
    core = core_of(text)
    entries = Entries(core, Uses(core, policy_of(core).rules))
    writer = EntryWriter(entries, KEY)
    inner: State = ("l", (("s", "y"),) * 1000)
    ok: dict[str, State] = {"k": ("s", ""), "l": ("l", (inner,) * 16)}
    found = writer.arguments("a", ok)
    reader = EntryReader(entries, writer.constants(), None)
    reader.arguments("a", found)
    with pytest.raises(Rejected, match="R105"):
        writer.arguments("a", {**ok, "l": ("l", (inner,) * 17)})
    grown: Any = json.loads(json.dumps(found))
    grown["l"]["of"].append(grown["l"]["of"][0])
    with pytest.raises(Rejected, match=r"^S204 at open: a.l"):
        reader.arguments("a", grown)


def test_texts_that_take_too_long_to_match_are_refused() -> None:
    core = core_of('tool a(k: text max 1048576)\nbefore a require k ~ "x{9}" or k ~ "x{90}"')
    writer = EntryWriter(Entries(core, Uses(core, policy_of(core).rules)), KEY)
    marks = [writer.arguments("a", {"k": ("s", "x" * size)})["k"] for size in (9, 80_000)]
    assert [mark["like"] for mark in marks if isinstance(mark, dict)] == ["01", "-0"]
    with pytest.raises(Rejected, match="R105"):
        writer.arguments("a", {"k": ("s", "x" * 90_000)})


@pytest.mark.parametrize(
    ("kind", "text"),
    [("n", "1e3"), ("n", "-0"), ("b", "True"), ("t", "01"), ("t", "1.5"), ("j", "{}"), ("z", "")],
)
def test_only_canonical_texts_are_values(kind: str, text: str) -> None:
    core = core_of("tool a(n: number, b: flag, t: time, j: list of number, z: text)")
    types = {one.name: one.type for one in core.tools[0].arguments}
    with pytest.raises(Rejected):
        state_of(kind, text, types[kind], nullable=False)


# What a ledger must not have.

SECRETS = """grammar secrets version "1"
given badge: text
given rank: number
tool look(name: text, age: number, tags: list of text, shape: object (size: number, color: text))
  gives (mail: text, phone: text, score: number, rows: list of (key: text, cell: text))
tool buy(name: text, price: number, comment?: text)
limit depth <= 9
before buy require look(same name)
before buy require price <= last(look).score
before buy require last(look).mail ~ ".*@example[.]com" and session.rank = 3
before buy require count(last(look).rows) < 5 and no last(look).rows(key = "k")
"""


def test_a_ledger_has_no_value_that_no_decision_needs() -> None:
    """Each secret is searched for; only what an order needs is there."""
    writer = SessionWriter(artifact_of(SECRETS), given={"badge": "sec-badge", "rank": 3})
    rows = [{"key": f"sec-key{at}", "cell": f"sec-cell{at}"} for at in range(3)]
    writer.made(
        "look",
        {"mail": "sec-mail@example.com", "phone": "sec-phone", "score": 77125, "rows": rows},
        name="sec-name",
        age=77124,
        tags=["sec-tag"],
        shape={"size": 77123, "color": "sec-color"},
    )
    writer.call("buy", name="sec-name", price=77122, comment="sec-comment")
    writer.unknown()
    writer.resolve(2, "done", {}, who="ann")
    writer.end()
    text = writer.ledger().decode()
    assert "sec-" not in text
    assert "77123" not in text and "77124" not in text
    assert '"value":"77125"' in text and '"value":"77122"' in text  # `price <= score`
    look, outcome = writer.records[1], writer.records[2]
    assert all(look["open"][name].keys() == {"digest"} for name in look["open"])
    assert outcome["answers"].keys() == {"mail", "score", "rows"}
    assert outcome["answers"]["mail"].keys() == {"digest", "like"}
    assert all(row.keys() == {"of"} and row["of"].keys() == {"key"}
               for row in outcome["answers"]["rows"]["of"])  # fmt: skip


def test_a_digest_does_not_depend_on_the_field() -> None:
    writer, _ = reading()
    found = entry(writer, order=("s", "t"))
    assert found["order"]["digest"][:32] == found["tags"]["of"][0]["digest"]
    assert len({one["digest"] for one in found.values()}) == len(found)
    pairs = itertools.combinations([("n", 1), ("s", "1"), ("j", b"1"), ("t", 1)], 2)
    assert all(writer.digest(one) != writer.digest(other) for one, other in pairs)
