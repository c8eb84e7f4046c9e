"""The definition sentence by sentence: for each a policy, a session, and what it decides.

A case is made of short words: `text`, `number` and so on are fields, `done`, `unknown`, `refused`
and so on what happens.  The same cases are played to the slow interpreter and to the gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tests.oracle_policies import language as l

# Fields.


def open_field(kind: str, name: str, **more: Any) -> l.Field:
    """An open field; what is not of the field is of its type."""
    mine = {k: more.pop(k) for k in ("optional", "null", "place", "answer") if k in more}
    return l.Field(name=name, type=l.Type(kind=kind, **more), **mine)


text, number, flag = (partial(open_field, kind) for kind in ("text", "number", "flag"))
time, date, json = (partial(open_field, kind) for kind in ("time", "date", "json"))
TEXT, NUMBER = l.Type(kind="text"), l.Type(kind="number")


def many(name: str, of: l.Type = TEXT, **more: Any) -> l.Field:
    """A list."""
    return open_field("list", name, of=of, **more)


def record(*fields: l.Field) -> l.Type:
    """A record."""
    return l.Type(kind="record", fields=fields)


def listed(name: str, *values: Any, **more: Any) -> l.Field:
    """A listed field."""
    return l.Field(name=name, values=values, **more)


def tool(name: str, *fields: l.Field, gives: Sequence[l.Field] = (), **more: Any) -> l.Tool:
    """A tool."""
    answers = [replace(field, answer=True) for field in gives]
    return l.Tool(name=name, fields=(*fields, *answers), **more)


# Sets, terms, relations.


def calls(name: str, **where: Any) -> l.Pattern:
    """A pattern; a value is one of a tuple."""
    items = [(k, v if isinstance(v, tuple) else (v,)) for k, v in where.items()]
    return l.Pattern(tool=name, where=tuple(items))


def own(name: str, part: str | None = None) -> l.Of:
    """A field of the call that is decided on."""
    return l.Of(scope="own", name=name, part=part)


def seen(name: str, part: str | None = None) -> l.Of:
    """A field of the earlier call."""
    return l.Of(scope="seen", name=name, part=part)


def element(name: str, part: str | None = None) -> l.Of:
    """An element that is named."""
    return l.Of(scope=name, name=part)


def const(value: Any, unit: str | None = None) -> l.Const:
    """A constant."""
    return l.Const(value=value, unit=unit)


def is_(left: Any, op: str, right: Any, *, maybe: bool = False) -> l.Compare:
    """A comparison; what is no term is a constant."""
    return l.Compare(op=op, left=_term(left), right=_term(right), maybe=maybe)


def _term(value: Any) -> Any:
    return value if hasattr(value, "__dataclass_fields__") else const(value)


def in_(left: Any, right: Any, **more: Any) -> l.In:
    """Whether it is in a list."""
    among = l.Constants(values=right) if isinstance(right, tuple) else right
    return l.In(left=_term(left), right=among, **more)


def every(of: Any, op: str, right: Any) -> l.Every:
    """Of every element."""
    left = l.Of(scope=l.ELEMENT, name=None)
    if op in ("in", "not in"):
        return l.Every(of=of, each=in_(left, right, negated=op == "not in"))
    return l.Every(of=of, each=is_(left, op, right))


def some(of: Any, name: str, *relations: l.Relation) -> l.Group:
    """Of some element."""
    return l.Group(every=False, lists=((of, name),), relations=relations)


def pairs(one: Any, other: Any, *relations: l.Relation) -> l.Group:
    """Of all pairs of elements ``a`` and ``b``."""
    return l.Group(every=True, lists=((one, "a"), (other, "b")), relations=relations)


def plus(one: Any, more: Any, factor: int = 1) -> l.Linear:
    """A sum."""
    return l.Linear(parts=((1, _term(one)), (factor, _term(more))))


def session(name: str) -> l.Attribute:
    """An attribute of the session."""
    return l.Attribute(name=name)


# Statements.


def alt(of: l.Calls | None, *where: l.Relation, same: Any = (), **more: Any) -> l.Alternative:
    """An alternative; `same` names fields, or pairs one with a term."""
    keys = [(k, own(k)) if isinstance(k, str) else (k[0], _term(k[1])) for k in same]
    return l.Alternative(calls=of, where=where, same=tuple(keys), **more)


def require(*alternatives: l.Alternative, before: l.Calls, **more: Any) -> l.Require:
    """A require."""
    return l.Require(alternatives=alternatives, before=before, **more)


def forbid(*alternatives: l.Alternative, before: l.Calls, **more: Any) -> l.Forbid:
    """A forbid."""
    return l.Forbid(alternatives=alternatives, before=before, **more)


def policy(*parts: Any, depth: int = 9) -> l.Grammar:
    """A grammar of tools, statements, given attributes, lets and rules, in any order."""
    return l.Grammar(
        tools=tuple(p for p in parts if isinstance(p, l.Tool)),
        given=tuple(p for p in parts if isinstance(p, l.Field)),
        lets=tuple(p for p in parts if isinstance(p, (l.Let, l.LookUp))),
        rules=tuple(p for p in parts if isinstance(p, l.Named)),
        statements=(
            *(p for p in parts if isinstance(p, _STATEMENTS)),
            l.Depth(most=depth),
        ),
    )


_STATEMENTS = (l.Require, l.Owed, l.Forbid, l.Apart, l.Neighbours, l.Uses, l.Sum)


# What happens.


@dataclass(frozen=True, kw_only=True)
class Does:
    """A step.

    Attributes:
        what: ``call`` (allowed and made), ``may`` (allowed), ``not`` (refused), ``resolve``,
            ``clock``, ``finish``.
        code: of the refusal.
        outcome: of the call, or what is resolved; `seq` says of which call.
        answer: JSON.
        ms: since the start; what the clock says from now on.
        finish: whether the session may end.
    """

    what: str
    tool: str = ""
    arguments: Any = None
    code: str | None = None
    outcome: str = "done"
    answer: Any = None
    seq: int = 0
    ms: int = 0
    finish: bool = True


def done(tool: str, answer: Any = None, **arguments: Any) -> Does:
    """A call that is allowed and done."""
    return Does(
        what="call", tool=tool, arguments=arguments, answer={} if answer is None else answer
    )


def unknown(tool: str, **arguments: Any) -> Does:
    """A call that is allowed, and of which nobody knows what came."""
    return Does(what="call", tool=tool, arguments=arguments, outcome="unknown")


def failed(tool: str, **arguments: Any) -> Does:
    """A call that is allowed, and had no effect."""
    return Does(what="call", tool=tool, arguments=arguments, outcome="failed")


def answered(tool: str, **arguments: Any) -> Does:
    """A call that is allowed, and ended in an error that the caller has read."""
    return Does(what="call", tool=tool, arguments=arguments, outcome="answered")


def may(tool: str, **arguments: Any) -> Does:
    """A call that is allowed, and not made."""
    return Does(what="may", tool=tool, arguments=arguments)


def refused(tool: str, code: str = "R202", **arguments: Any) -> Does:
    """A call that is refused."""
    return Does(what="not", tool=tool, arguments=arguments, code=code)


def resolved(seq: int, outcome: str = "done", **answer: Any) -> Does:
    """An unknown outcome is known."""
    return Does(what="resolve", seq=seq, outcome=outcome, answer=answer)


def clock(ms: int) -> Does:
    """The clock says so many milliseconds since the start."""
    return Does(what="clock", ms=ms)


def finish(may: bool) -> Does:
    """Whether the session may end here."""
    return Does(what="finish", finish=may)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A sentence, a policy that it is about, and a session."""

    says: str
    grammar: l.Grammar
    steps: tuple[Does, ...]
    given: dict[str, Any]


CASES: list[Case] = []


def case(says: str, grammar: l.Grammar, *steps: Does, **given: Any) -> None:
    """One more."""
    CASES.append(Case(says=says, grammar=grammar, steps=steps, given=given))


# Values.


def where(of: l.Calls, *relations: l.Relation) -> l.Require:
    """``require B where R, ..``."""
    return require(l.Alternative(calls=None, where=relations), before=of)


_GET = tool(
    "get", text("id"), gives=[text("owner"), number("total"), listed("state", "new", "old")]
)
_PUT = tool("put", text("id"), text("who", optional=True), number("sum", optional=True))

case(
    "A listed value that is a text is that text",
    policy(
        tool("get", gives=[listed("state", "new", "old")]),
        tool("put", text("state")),
        require(alt(calls("get"), is_(seen("state"), "=", own("state"))), before=calls("put")),
    ),
    done("get", {"state": "new"}),
    may("put", state="new"),
    refused("put", state="old"),
)
case(
    "Numbers are exact: 5, 5.0 and 5e0 are one value",
    policy(tool("put", number("sum")), where(calls("put"), is_(own("sum"), "=", 5))),
    may("put", sum=5.0),
    refused("put", sum=5.000000000000001),
)
case(
    "A date is its midnight, in the zone that is said",
    policy(
        tool("put", date("day", zone="-05:00"), time("at")),
        where(calls("put"), is_(own("day"), "=", own("at"))),
    ),
    may("put", day="2024-05-15", at="2024-05-15T05:00:00Z"),
    may("put", day="2024-05-15", at="2024-05-15T00:00:00-05:00"),
    refused("put", day="2024-05-15", at="2024-05-15T00:00:00Z"),
)
case(
    "A time without a zone is of another type, unless a zone is said",
    policy(tool("put", time("at")), tool("ask", time("at", zone="utc"))),
    refused("put", "R105", at="2024-05-15T05:00:00"),
    may("put", at="2024-05-15T05:00:00+02:00"),
    may("ask", at="2024-05-15T05:00:00"),
)
case(
    "A list has a least and a most number of elements, and distinct ones where it says so",
    policy(tool("put", many("ids", low=1, high=2, distinct=True))),
    may("put", ids=["a", "b"]),
    refused("put", "R105", ids=[]),
    refused("put", "R105", ids=["a", "b", "c"]),
    refused("put", "R105", ids=["a", "a"]),
    refused("put", "R105", ids="a"),
    refused("put", "R105", ids=["a", 1]),
)
case(
    "A list has at most 1,000 elements",
    policy(tool("put", many("ids"))),
    may("put", ids=["a"] * 1000),
    refused("put", "R105", ids=["a"] * 1001),
)
case(
    "json is compared as canonical text",
    policy(
        tool("put", json("one"), json("other")),
        where(calls("put"), is_(own("one"), "=", own("other"))),
    ),
    may("put", one={"a": 1, "b": [2.0]}, other={"b": [2], "a": 1.0}),
    refused("put", one=[1, 2], other=[2, 1]),
)
case(
    "= compares lists in order",
    policy(
        tool("put", many("one"), many("other")),
        where(calls("put"), is_(own("one"), "=", own("other"))),
    ),
    may("put", one=["a", "b"], other=["a", "b"]),
    refused("put", one=["a", "b"], other=["b", "a"]),
)

# Fields and places.

_PAYS = tool(
    "book",
    json("pays"),
    many("paid_by", place="/pays/*/id"),
    text("last_paid", place="/pays/-1/id", optional=True),
)
case(
    "* is each element of an array, -1 the last one",
    policy(
        _PAYS,
        where(
            calls("book"),
            every(own("paid_by"), "in", ("a", "b")),
            is_(own("last_paid"), "=", "b", maybe=True),
        ),
    ),
    may("book", pays=[{"id": "a"}, {"id": "b"}]),
    may("book", pays=[]),
    refused("book", pays=[{"id": "b"}, {"id": "a"}]),
    refused("book", pays=[{"id": "a"}, {"id": "c"}, {"id": "b"}]),
)
case(
    "* is each member of an object",
    policy(_PAYS, where(calls("book"), every(own("paid_by"), "in", ("a", "b")))),
    may("book", pays={"x": {"id": "a"}, "y": {"id": "b"}}),
    refused("book", pays={"x": {"id": "a"}, "y": {"id": "c"}}),
)
case(
    "A field with * that is missing in one element is missing",
    policy(_PAYS),
    refused("book", "R103", pays=[{"id": "a"}, {}]),
    refused("book", "R103", pays="a"),
)
case(
    "A field at another place than the member of its name declares no argument",
    policy(_PAYS),
    refused("book", "R102", pays=[], paid_by=[]),
)
case(
    "The whole answer is at the empty pointer",
    policy(
        tool("list", gives=[many("names", place="")]),
        tool("put", text("name")),
        require(alt(calls("list"), in_(own("name"), seen("names"))), before=calls("put")),
    ),
    done("list", ["a", "b"]),
    may("put", name="b"),
    refused("put", name="c"),
)
case(
    "An answer may be called otherwise than an argument of its name",
    policy(
        tool(
            "book",
            listed("class", "low", "high"),
            gives=[listed("got", "low", "high", place="/class")],
        ),
        tool("put"),
        require(alt(calls("book"), is_(seen("class"), "=", seen("got"))), before=calls("put")),
    ),
    done("book", {"class": "high"}, **{"class": "low"}),
    refused("put", "R201"),
    done("book", {"class": "low"}, **{"class": "low"}),
    may("put"),
)
case(
    "An answer that is missing, or of another type, is unknown, and the session goes on",
    policy(
        _GET,
        _PUT,
        require(alt(calls("get"), is_(seen("owner"), "=", own("id"))), before=calls("put")),
    ),
    done("get", {"owner": 7, "total": 1, "state": "new"}, id="a"),
    refused("put", id="7"),
    done("get", {"total": 1, "state": "new"}, id="a"),
    refused("put", id="u"),
    done("get", {"owner": "u", "total": 1, "state": "new"}, id="a"),
    may("put", id="u"),
    finish(True),
)
case(
    "An answer that is not listed is unknown, unless * is listed",
    policy(
        tool("get", gives=[listed("state", "new", "old")]),
        tool("look", gives=[listed("state", "new", rest=True)]),
        tool("put"),
        tool("sell"),
        forbid(alt(calls("get", state="old")), before=calls("put")),
        require(alt(calls("look", state=l.REST)), before=calls("sell")),
    ),
    done("get", {"state": "other"}),
    refused("put", "R201"),
    refused("sell", "R201"),
    done("look", {"state": "other"}),
    may("sell"),
)
for _says, _relation, _holds in (
    ("a value that is listed: it is surely another", is_(seen("state"), "!=", "new"), True),
    ("a value that is not listed: it may be that", is_(seen("state"), "!=", "c"), False),
    (
        "some values, of which one is not listed",
        in_(seen("state"), ("new", "c"), negated=True),
        False,
    ),
    ("listed values alone: it is in none", in_(seen("state"), ("new", "old"), negated=True), True),
    ("a pattern", l.Like(left=seen("state"), pattern="n.*", negated=True), False),
    ("a text of the call", is_(seen("state"), "!=", own("note")), False),
):
    case(
        f"What is not listed beside {_says}",
        policy(
            tool("get", gives=[listed("state", "new", "old", rest=True)]),
            tool("put", text("note", optional=True)),
            require(alt(calls("get"), _relation, last=True), before=calls("put")),
        ),
        done("get", {"state": "other"}),
        # In the plans, where it speaks of listed fields alone.
        may("put", note="c")
        if _holds
        else refused("put", "R202" if "call" in _says else "R201", note="c"),
    )
case(
    "null is none, with `or null`",
    policy(
        tool("put", text("who", optional=True, null=True)),
        where(calls("put"), is_(own("who"), "=", "a", maybe=True)),
    ),
    may("put", who=None),
    may("put"),
    may("put", who="a"),
    refused("put", who="b"),
)
case(
    "Without `or null`, null is of another type",
    policy(tool("put", text("who", optional=True))),
    refused("put", "R105", who=None),
)

# None, unknown, unsure.

case(
    "With a none side a relation is unsure, and a require is not met",
    policy(_PUT, where(calls("put"), is_(own("who"), "=", own("id")))),
    refused("put", id="a"),
    may("put", id="a", who="a"),
)
case(
    "Unsure is not opposite to itself: != of a none side is unsure, too",
    policy(_PUT, where(calls("put"), is_(own("who"), "!=", own("id")))),
    refused("put", id="a"),
    may("put", id="a", who="b"),
)
case(
    "f? R t is true where f is none",
    policy(_PUT, where(calls("put"), is_(own("who"), "=", own("id"), maybe=True))),
    may("put", id="a"),
    refused("put", id="a", who="b"),
)
case(
    "every is true of an empty list",
    policy(tool("put", many("ids")), where(calls("put"), every(own("ids"), "=", "a"))),
    may("put", ids=[]),
    may("put", ids=["a", "a"]),
    refused("put", ids=["a", "b"]),
)
case(
    "every over pairs is false if the lengths differ",
    policy(
        tool("put", many("one"), many("other")),
        where(calls("put"), pairs(own("one"), own("other"), is_(element("a"), "=", element("b")))),
    ),
    may("put", one=[], other=[]),
    may("put", one=["a", "b"], other=["a", "b"]),
    refused("put", one=["a"], other=["a", "b"]),
    refused("put", one=["b", "a"], other=["a", "b"]),
)
_LEGS = many("legs", of=record(text("number"), number("price", place="/cost/total")))
case(
    "some is the dual: one element of which all relations hold",
    policy(
        tool("put", _LEGS),
        where(
            calls("put"),
            some(
                own("legs"),
                "a",
                is_(element("a", "number"), "=", "x"),
                is_(element("a", "price"), ">", 1),
            ),
        ),
    ),
    may("put", legs=[{"number": "y", "cost": {"total": 0}}, {"number": "x", "cost": {"total": 2}}]),
    refused(
        "put", legs=[{"number": "x", "cost": {"total": 1}}, {"number": "y", "cost": {"total": 2}}]
    ),
    refused("put", legs=[]),
)
case(
    "A field of records is the list of it",
    policy(
        tool("put", _LEGS, text("id")), where(calls("put"), in_(own("id"), own("legs", "number")))
    ),
    may("put", legs=[{"number": "x", "cost": {"total": 2}}], id="x"),
    refused("put", legs=[{"number": "x", "cost": {"total": 2}}], id="y"),
    refused("put", "R105", legs=[{"number": "x"}], id="x"),
)
case(
    "count, of elements or of those of which a relation holds",
    policy(
        tool("put", many("ids")),
        where(
            calls("put"),
            is_(l.Count(of=own("ids")), "<=", 3),
            is_(l.Count(of=own("ids"), op="~", pattern="gift_.*"), "<=", 1),
        ),
    ),
    may("put", ids=["a", "gift_1", "b"]),
    refused("put", ids=["gift_1", "gift_2"]),
    refused("put", ids=["a", "b", "c", "d"]),
)
case(
    "Linear terms and max",
    policy(
        tool("put", number("one"), number("other")),
        where(
            calls("put"),
            is_(l.Linear(parts=((2, own("one")), (-1, own("other")))), "<=", 4),
            is_(l.Max(one=own("one"), other=own("other")), "<", 10),
        ),
    ),
    may("put", one=4, other=4),
    refused("put", one=4, other=3.9),
    refused("put", one=0, other=10),
)

# History, sets, alternatives.

_ORDERS = (
    tool("get", text("order"), gives=[listed("status", "pending", "sent"), text("owner")]),
    tool("cancel", text("order"), text("user", optional=True)),
    tool("modify", text("order")),
)
_NEW, _SENT = {"status": "pending", "owner": "u"}, {"status": "sent", "owner": "u"}
case(
    "require: an alternative surely holds of an earlier call",
    policy(
        *_ORDERS,
        require(
            alt(calls("get"), is_(seen("status"), "=", "pending"), same=["order"]),
            before=l.Either(sets=(calls("cancel"), calls("modify"))),
        ),
    ),
    refused("cancel", "R201", order="1"),
    done("get", _NEW, order="1"),
    may("cancel", order="1"),
    may("modify", order="1"),
    refused("cancel", order="2"),
    done("get", _SENT, order="2"),
    refused("cancel", order="2"),
)
case(
    "A call whose outcome is unknown helps nobody, until it is resolved",
    policy(*_ORDERS, require(alt(calls("get"), same=["order"]), before=calls("cancel"))),
    unknown("get", order="1"),
    refused("cancel", "R201", order="1"),
    resolved(1, status="pending"),
    may("cancel", order="1"),
)
case(
    "Failed calls are taken out",
    policy(*_ORDERS, require(alt(calls("get"), same=["order"]), before=calls("cancel"))),
    failed("get", order="1"),
    refused("cancel", "R201", order="1"),
)
case(
    "last: the latest call with these keys, whatever it answered",
    policy(
        *_ORDERS,
        require(
            alt(calls("get"), is_(seen("status"), "=", "pending"), same=["order"], last=True),
            before=calls("cancel"),
        ),
    ),
    done("get", _NEW, order="1"),
    may("cancel", order="1"),
    done("get", _SENT, order="1"),
    refused("cancel", order="1"),
    done("get", _NEW, order="2"),
    refused("cancel", order="1"),
    may("cancel", order="2"),
)
case(
    "last: patterns are conditions on the latest call, not keys",
    policy(
        *_ORDERS,
        require(
            alt(calls("get", status="pending"), same=["order"], last=True), before=calls("cancel")
        ),
    ),
    done("get", _NEW, order="1"),
    may("cancel", order="1"),
    done("get", _SENT, order="1"),
    refused("cancel", order="1"),
)
case(
    "last: where the latest is not done, nothing surely holds",
    policy(
        *_ORDERS,
        require(
            alt(calls("get"), is_(seen("status"), "=", "pending"), same=["order"], last=True),
            before=calls("cancel"),
        ),
    ),
    done("get", _NEW, order="1"),
    unknown("get", order="1"),
    refused("cancel", order="1"),
    resolved(2, "failed"),
    may("cancel", order="1"),
)
case(
    "last: where a key of the latest is unsure, nothing surely holds",
    policy(
        tool("get", text("order", optional=True)),
        tool("cancel", text("order")),
        require(alt(calls("get"), same=["order"], last=True), before=calls("cancel")),
    ),
    done("get", order="1"),
    may("cancel", order="1"),
    done("get"),
    refused("cancel", order="1"),
    done("get", order="2"),
    refused("cancel", order="1"),
    may("cancel", order="2"),
)
case(
    "forbid with last: of the latest call that is done, and of every later one that may be it",
    policy(
        *_ORDERS,
        forbid(
            alt(calls("get"), is_(seen("owner"), "!=", own("user")), same=["order"], last=True),
            before=calls("cancel"),
        ),
    ),
    done("get", {"status": "sent", "owner": "v"}, order="1"),
    refused("cancel", order="1", user="u"),
    done("get", _SENT, order="1"),
    may("cancel", order="1", user="u"),
    unknown("get", order="1"),
    refused("cancel", order="1", user="u"),
    resolved(3, "failed"),
    may("cancel", order="1", user="u"),
)
case(
    "or: one of the alternatives, each with its own keys and conditions",
    policy(
        *_ORDERS,
        require(
            alt(calls("get", status="pending"), same=["order"]),
            alt(calls("modify"), same=["order"], within=60_000),
            before=calls("cancel"),
        ),
    ),
    refused("cancel", "R201", order="1"),
    done("modify", order="1"),
    may("cancel", order="1"),
    clock(60_000),
    may("cancel", order="1"),
    clock(60_001),
    refused("cancel", order="1"),
    done("get", _NEW, order="1"),
    may("cancel", order="1"),
)
case(
    "A count: so many earlier calls",
    policy(
        tool("approve", text("order")),
        tool("pay", text("order")),
        require(alt(calls("approve"), same=["order"], least=2), before=calls("pay")),
    ),
    done("approve", order="1"),
    done("approve", order="2"),
    refused("pay", order="1"),
    done("approve", order="1"),
    may("pay", order="1"),
    refused("pay", order="2"),
)
case(
    "each: a call no longer helps once a call that it may have served was made, done or unknown",
    policy(
        tool("approve", text("order")),
        tool("pay", text("order")),
        require(alt(calls("approve"), same=["order"]), before=calls("pay"), each=True),
    ),
    done("approve", order="1"),
    unknown("pay", order="1"),
    refused("pay", order="1"),
    done("approve", order="1"),
    done("pay", order="1"),
    refused("pay", order="1"),
)
case(
    "each: by the same alternative",
    policy(
        tool("approve", text("order")),
        tool("ask", text("order")),
        tool("pay", text("order")),
        require(
            alt(calls("approve"), same=["order"]),
            alt(calls("ask"), same=["order"]),
            before=calls("pay"),
            each=True,
        ),
    ),
    done("approve", order="1"),
    done("ask", order="1"),
    done("pay", order="1"),
    refused("pay", order="1"),
    done("ask", order="1"),
    may("pay", order="1"),
)
case(
    "each with conditions: what was made with other values did not use it",
    policy(
        tool("approve", text("order"), number("most")),
        tool("pay", text("order"), number("sum")),
        require(
            alt(calls("approve"), is_(own("sum"), "<=", seen("most")), same=["order"]),
            before=calls("pay"),
            each=True,
        ),
    ),
    done("approve", order="1", most=5),
    done("approve", order="1", most=9),
    refused("pay", order="1", sum=10),
    done("pay", order="1", sum=7),
    may("pay", order="1", sum=5),
    refused("pay", order="1", sum=6),
)
case(
    "require B where: all relations are true",
    policy(
        _PUT, where(calls("put"), is_(own("id"), "!=", "a"), is_(own("sum"), "<", 5, maybe=True))
    ),
    refused("put", id="a"),
    refused("put", id="b", sum=5),
    may("put", id="b", sum=4),
    may("put", id="b"),
)
case(
    "where alone, beside an alternative over calls",
    policy(
        tool("approve"),
        tool("pay", number("sum")),
        require(
            l.Alternative(calls=None, where=(is_(own("sum"), "<=", 10),)),
            alt(calls("approve")),
            before=calls("pay"),
        ),
    ),
    may("pay", sum=10),
    refused("pay", sum=11),
    done("approve"),
    may("pay", sum=11),
)
case(
    "require A after B: at the end each B, done or unknown, has a later A that is done",
    policy(
        tool("open", text("door")),
        tool("close", text("door")),
        l.Owed(calls=calls("close"), after=calls("open"), same=(("door", own("door")),)),
    ),
    done("close", door="1"),
    finish(True),
    done("open", door="1"),
    finish(False),
    done("close", door="2"),
    finish(False),
    unknown("close", door="1"),
    finish(False),
    resolved(4),
    finish(True),
    unknown("open", door="1"),
    finish(False),
    resolved(5, "failed"),
    finish(True),
)

# Forbid.

_WEB = (
    tool("read", text("page")),
    tool("approve", text("to"), gives=[listed("answer", "yes", "no")]),
    tool("send", text("to")),
)
case(
    "forbid before: done or unknown, from its call on",
    policy(
        *_WEB, forbid(alt(calls("read"), is_(seen("page"), "!=", "home")), before=calls("send"))
    ),
    done("read", page="home"),
    may("send", to="a"),
    unknown("read", page="x"),
    refused("send", to="a"),
    resolved(2, "failed"),
    may("send", to="a"),
)
case(
    "unless: a call of which it surely holds, made after the outcome was recorded",
    policy(
        *_WEB,
        forbid(
            alt(calls("read"), is_(seen("page"), "!=", "home")),
            before=calls("send"),
            unless=(alt(calls("approve", answer="yes"), same=["to"]),),
        ),
    ),
    done("approve", {"answer": "yes"}, to="a"),
    done("read", page="x"),
    refused("send", to="a"),
    done("approve", {"answer": "no"}, to="a"),
    refused("send", to="a"),
    done("approve", {"answer": "perhaps"}, to="a"),
    refused("send", to="a"),
    done("approve", {"answer": "yes"}, to="a"),
    may("send", to="a"),
    refused("send", to="b"),
    done("read", page="y"),
    refused("send", to="a"),
)
case(
    "unless with a count: so many calls since",
    policy(
        *_WEB,
        forbid(
            alt(calls("read")),
            before=calls("send"),
            unless=(alt(calls("approve", answer="yes"), same=["to"], least=2),),
        ),
    ),
    done("approve", {"answer": "yes"}, to="a"),
    done("read", page="x"),
    done("approve", {"answer": "yes"}, to="a"),
    refused("send", to="a"),
    done("approve", {"answer": "yes"}, to="a"),
    may("send", to="a"),
)
case(
    "In the relations of unless, seen is the call that lifts",
    policy(
        tool("read", number("level")),
        tool("approve", number("level")),
        tool("send", number("level")),
        forbid(
            alt(calls("read"), is_(seen("level"), ">", own("level"))),
            before=calls("send"),
            unless=(alt(calls("approve"), is_(seen("level"), ">=", plus(own("level"), 1))),),
        ),
    ),
    done("read", level=3),
    may("send", level=3),
    refused("send", level=2),
    done("approve", level=2),
    refused("send", level=2),
    may("send", level=1),
    done("approve", level=3),
    may("send", level=2),
)
case(
    "forbid with an unknown answer: it counts unless it surely does not",
    policy(
        tool("get", gives=[text("owner"), number("risk", optional=True)]),
        tool("send"),
        forbid(alt(calls("get"), is_(seen("risk"), ">", 5)), before=calls("send")),
    ),
    done("get", {"owner": "a", "risk": 1}),
    may("send"),
    done("get", {"owner": "a", "risk": "high"}),
    refused("send"),
)
case(
    "forbid with a none answer: unsure, so it counts",
    policy(
        tool("get", gives=[number("risk", optional=True)]),
        tool("send"),
        forbid(alt(calls("get"), is_(seen("risk"), ">", 5)), before=calls("send")),
    ),
    done("get", {"risk": 5}),
    may("send"),
    done("get", {}),
    refused("send"),
)
case(
    "An error that was read counts as done for forbid, and for nothing else",
    policy(
        tool("read", text("page"), errors=True),
        tool("send", text("to")),
        tool("tell"),
        forbid(alt(calls("read"), is_(seen("page"), "!=", "home")), before=calls("send")),
        require(alt(calls("read"), is_(seen("page"), "!=", "home")), before=calls("tell")),
        l.Uses(calls=calls("read"), most=1, per=(own("page"),)),
    ),
    answered("read", page="x"),
    refused("send", to="a"),
    refused("tell", "R201"),
    done("read", page="x"),
    may("tell"),
    refused("read", page="x"),
)
case(
    "An error that was read, of listed fields alone: it may have been any answer, each by itself",
    policy(
        tool("own", listed("way", "a", "b"), gives=[listed("got", "a", "b")], errors=True),
        tool("send"),
        tool("tell"),
        # No answer is at once b, as the pattern wants it, and the a that it was asked with.
        forbid(
            alt(calls("own", way="a", got="b"), is_(seen("got"), "=", seen("way"))),
            before=calls("send"),
        ),
        forbid(
            alt(calls("own", way="a"), is_(seen("got"), "=", seen("way"))),
            before=calls("tell"),
        ),
    ),
    answered("own", way="a"),
    may("send"),
    refused("tell"),
)

# Limits.

case(
    "limit uses with where, per several, within: both ends count",
    policy(
        tool("send", text("to"), text("by"), number("sum")),
        l.Uses(
            calls=calls("send"),
            where=(is_(own("sum"), ">", 1),),
            per=(own("to"), own("by")),
            most=1,
            within=60_000,
        ),
    ),
    done("send", to="a", by="u", sum=2),
    may("send", to="a", by="u", sum=1),
    may("send", to="a", by="v", sum=2),
    refused("send", to="a", by="u", sum=2),
    clock(60_000),
    refused("send", to="a", by="u", sum=2),
    clock(60_001),
    may("send", to="a", by="u", sum=2),
)
case(
    "limit uses counts unknown outcomes",
    policy(tool("send", text("to")), l.Uses(calls=calls("send"), per=(own("to"),), most=1)),
    unknown("send", to="a"),
    refused("send", to="a"),
    resolved(1, "failed"),
    may("send", to="a"),
)
case(
    "limit uses of a relation that is unsure counts",
    policy(
        tool("send", number("sum", optional=True)),
        l.Uses(calls=calls("send"), where=(is_(own("sum"), ">", 1),), most=1),
    ),
    done("send"),
    refused("send"),
    refused("send", sum=2),
    may("send", sum=1),
)
case(
    "limit sum, per a field and within a window",
    policy(
        tool("pay", text("to"), number("sum", low=0, high=100)),
        l.Sum(tool="pay", field="sum", most=10, per=(own("to"),), within=60_000),
    ),
    done("pay", to="a", sum=6),
    refused("pay", to="a", sum=4.5),
    may("pay", to="a", sum=4),
    may("pay", to="b", sum=10),
    refused("pay", to="b", sum=10.1),
    clock(60_001),
    may("pay", to="a", sum=10),
)
case(
    "Now never goes back",
    policy(
        tool("ask"),
        tool("pay"),
        require(alt(calls("ask"), within=60_000), before=calls("pay")),
    ),
    done("ask"),
    clock(50_000),
    done("pay"),
    clock(-1_000_000),
    may("pay"),
    done("ask"),
    clock(110_000),
    may("pay"),
    clock(110_001),
    refused("pay"),
)
case(
    "now, compared with an answer",
    policy(
        tool("get", gives=[time("created", zone="utc")]),
        tool("cancel"),
        require(
            alt(calls("get"), is_(l.Now(), "<=", plus(seen("created"), const(24, "h"))), last=True),
            before=calls("cancel"),
        ),
    ),
    done("get", {"created": "2024-05-14T10:00:01"}),
    may("cancel"),
    clock(1000),
    may("cancel"),
    clock(1001),
    refused("cancel"),
)

# Sets.

case(
    "Sets: any less some, choices",
    policy(
        tool("login"),
        tool("help"),
        tool("pay", text("to")),
        tool("tell", text("to")),
        require(
            alt(calls("login")),
            before=l.But(one=l.Any_(), other=l.Either(sets=(calls("login"), calls("help")))),
        ),
    ),
    may("help"),
    refused("pay", "R201", to="a"),
    done("login"),
    may("tell", to="a"),
)
case(
    "A pattern over answers is unsure of a call whose answer is unknown",
    policy(
        tool("get", text("id"), gives=[listed("state", "new", "old")]),
        tool("put", text("id")),
        forbid(
            alt(l.But(one=calls("get"), other=calls("get", state="new")), same=["id"]),
            before=calls("put"),
        ),
    ),
    done("get", {"state": "new"}, id="a"),
    may("put", id="a"),
    unknown("get", id="a"),
    refused("put", id="a"),
    resolved(2, state="new"),
    may("put", id="a"),
)

# Sessions.

case(
    "given: handed in at the opening; what was not given is unknown",
    policy(
        l.Field(name="user", type=TEXT),
        tool("pay", text("by")),
        where(calls("pay"), is_(own("by"), "=", session("user"))),
    ),
    may("pay", by="u"),
    refused("pay", by="v"),
    user="u",
)
case(
    "let: the first known value, in order of outcomes; it never changes",
    policy(
        tool("by_mail", gives=[text("user")]),
        tool("by_name", gives=[text("id")]),
        tool("pay", text("by")),
        l.Let(name="customer", sources=(("by_mail", "user"), ("by_name", "id"))),
        where(calls("pay"), is_(own("by"), "=", session("customer"))),
    ),
    refused("pay", by="u"),
    done("by_mail", {"user": 7}),
    refused("pay", by="u"),
    unknown("by_mail"),
    done("by_name", {"id": "u"}),
    may("pay", by="u"),
    done("by_mail", {"user": "v"}),
    may("pay", by="u"),
    refused("pay", by="v"),
)
case(
    "let: an argument counts from the outcome of its call, if that is done",
    policy(
        tool("login", text("user")),
        tool("pay", text("by")),
        l.Let(name="customer", sources=(("login", "user"),)),
        where(calls("pay"), is_(own("by"), "=", session("customer"))),
    ),
    failed("login", user="v"),
    unknown("login", user="w"),
    refused("pay", by="w"),
    done("login", user="u"),
    may("pay", by="u"),
    resolved(2),
    refused("pay", by="w"),
)
case(
    "A look-up is of the latest call with this argument",
    policy(
        tool("get", text("order"), gives=[text("owner")]),
        tool("pay", text("order"), text("by")),
        l.LookUp(name="found", keys=("order",), calls=calls("get")),
        where(
            calls("pay"),
            is_(own("by"), "=", l.Look(name="found", keys=(own("order"),), field="owner")),
        ),
    ),
    refused("pay", order="1", by="u"),
    done("get", {"owner": "u"}, order="1"),
    may("pay", order="1", by="u"),
    refused("pay", order="2", by="u"),
    done("get", {"owner": "v"}, order="1"),
    refused("pay", order="1", by="u"),
    may("pay", order="1", by="v"),
    unknown("get", order="1"),
    refused("pay", order="1", by="v"),
)
case(
    "A look-up of rows is of the latest row; a source whose answer is unknown makes it unknown",
    policy(
        tool("search", gives=[many("rows", of=record(text("number"), number("seats")))]),
        tool("book", text("flight")),
        l.LookUp(name="leg", keys=("number",), rows=(("search", "rows"),)),
        where(calls("book"), is_(l.Look(name="leg", keys=(own("flight"),), field="seats"), ">", 0)),
    ),
    refused("book", flight="x"),
    done("search", {"rows": [{"number": "x", "seats": 0}, {"number": "x", "seats": 2}]}),
    may("book", flight="x"),
    refused("book", flight="y"),
    done("search", {"rows": [{"number": "x", "seats": 0}]}),
    refused("book", flight="x"),
    done("search", {"rows": [{"number": "x", "seats": 1}]}),
    may("book", flight="x"),
    done("search", {"rows": "none"}),
    refused("book", flight="x"),
)
case(
    "limit depth counts calls that were let through and did not fail",
    policy(tool("ask", text("what")), depth=2),
    failed("ask", what="a"),
    done("ask", what="a"),
    unknown("ask", what="a"),
    refused("ask", "R201", what="a"),
    resolved(3, "failed"),
    done("ask", what="a"),
    refused("ask", "R201", what="a"),
)
case(
    "monitor: what speaks of listed fields alone is held all the same",
    policy(
        tool("ask", listed("what", "a", "b")),
        l.Uses(calls=calls("ask"), per=(own("what"),), most=1, monitor=True),
    ),
    done("ask", what="a"),
    refused("ask", what="a"),
    may("ask", what="b"),
)
case(
    "Refused calls leave no trace",
    policy(
        tool("ask", text("what")),
        l.Uses(calls=calls("ask"), per=(own("what"),), most=1),
        where(calls("ask"), is_(own("what"), "!=", "c")),
        depth=2,
    ),
    refused("ask", what="c"),
    refused("ask", what="c"),
    done("ask", what="a"),
    done("ask", what="b"),
)
