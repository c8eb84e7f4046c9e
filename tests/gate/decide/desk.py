"""Random policies of a support desk: every aggregate over sources with keys, windows and marks."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.kinds import Fault, Kinds
from tcc_certs.policy.plans import Call as PlanCall
from tcc_certs.values.declared import FlagType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    UnionType,
)
from tcc_certs.values.places import NONE, State, rest_of
from tests.oracle_meaning.drawn import DAY, HOUR, START
from tests.oracle_meaning.written import core_of

TOOLS = """
tool find(order: text, n: number 0 .. 9, kind?: a | b, note?: text, file?: path,
          ref?: text or number)
    gives (owner?: text, total: number, score: number or null, status: open | closed | *, at?: time,
           items?: list max 3 of (sku: text, price?: number), link?: url)
tool approve(order: text, n: number 0 .. 9, note?: text) gives (answer: yes | no, who?: text)
tool refund(order: text, n: number 0 .. 9, kind?: a | b, note?: text, tags?: list max 3 of text,
            file?: path, ref?: text or number)
tool login(note?: text) gives (user: text)
given customer: text
given root: path
given user from login.user
given approver from approve.who
given seen from find.status
"""
_KEYS = ("same order", "order = this.order", "same (order, n)", "same note",
         "note = this.note", "same kind", "order = session.customer", "note = session.user",
         "note = null", "same file")  # fmt: skip
_OWN = {
    "find": ("n > 1", "status = open", "status != closed", "total >= 2", "kind = a",
             "owner != null", "owner = session.customer", "owner = session.user",
             "no items(price > 1)", 'file under "/a"', "file not under session.root",
             'link under "https://*.b.com/a"', 'host(link) = "a.b.com"'),
    "approve": ("answer = yes", "n < 2", "who = note", "answer != yes or n = 1",
                "who = session.approver"),
    "refund": ("n > 1", "kind = b", "note != null", "tags(it = \"a\")"),
    "login": ("user = session.customer", "user = session.user"),
}  # fmt: skip
_REST = ("n <= this.n", "order != this.order", "order = session.user", "n < hour(now)",
         "no approve(order = it.order)", "last(find(same order)).total > n")  # fmt: skip
_RELATED = {
    "find": ("total >= this.n", "n < this.n", "this.n > total", "not n > this.n", "score <= this.n",
             "total in 1 .. this.n", "n in this.n .. 2", "at >= now - 1 h", "owner = this.note",
             "same note, owner = this.order", "owner != this.note", "status = this.note",
             "this.order in items.sku", "this.note in items.sku", "items(sku = this.order)",
             "items(price = this.n)", "no items(sku = this.order)", "items(price > this.n)",
             "items(price > 1)", "no items", "count(items) > 1", "max(items.price) < 2",
             "n * 2 > this.n + 1", "score < count(login)"),
    "approve": ("n >= this.n", "n < this.n", "who = this.order", "who = this.note",
                "this.note = who", "n in this.n .. this.n + 1"),
    "refund": ("n >= this.n", "this.n <= n", "this.order in tags", "this.note in tags",
               "tags(it = this.order)", "tags(it = \"a\")", "not this.note in tags",
               "this.order not in tags", "tags = this.tags"),
}  # fmt: skip
_OF_ROWS = ("items(price >= this.n)", "items(price < this.n)", "items(sku = this.order)",
            "items(sku = this.note, price > 0)", "items(price in 0 .. this.n)")  # fmt: skip
_OF_LISTS = ("every tags(it in last(refund).tags)", "not every tags(it in last(refund).tags)",
             "every tags(it in last(refund(same order)).tags)", "tags(it in last(refund).tags)",
             "no tags(it in last(refund).tags)", "every tags(it in last(find).items.sku)",
             "every tags(it in this.tags)", "order in tags", "note in tags", "note not in tags",
             "tags(it = this.note)", "tags(it = this.order)", "no tags(it = this.note)",
             "order in last(refund).tags", "every tags(it in refund.order)",
             "tags(it = this.order or it = session.customer)", "tags(it = session.user)",
             "count(tags(it in last(refund).tags)) < 2", "last(refund).tags(it = this.note)",
             "every tags(it in last(refund(n <= this.n)).tags)")  # fmt: skip
_MODIFIERS = (" within 1 h", " within 20 m", " since approve", " since refund(same order)",
              " since any - find", " since approve(answer = yes)",
              " since login(note = this.note)")  # fmt: skip
_OF_CALLS = ("{}", "no {}", "count({}) < 2", "not {}", "count({}) = 1", "last({}).n <= n",
             "last({}).order = order", "every {}(n < 2)", "not every {}(n < 2)",
             "every {}(n <= this.n)", "sum({}, n * 2) <= 6", "sum({}, 1 - n) <= 0")  # fmt: skip
_OF_FIELDS = ("sum({}) <= 4", "sum({}) + n <= 5", "max({}) <= 2", "min({}) >= 1",
              "min({}) < n", "max({}) = 2", "count({}) > 1", "count(distinct({})) < 2",
              "count(distinct({})) = 1", "n in {}", "n not in {}", "n in 1 .. max({})",
              "not n in min({}) .. 1", "not n in {}", "{}", "no {}", "every {}(it < 2)",
              "last({}) = n", "no {}(it > 2)")  # fmt: skip
_OF_TEXTS = ("order in {}", "note not in {}", "not note in {}", "order not in {}",
             "not order in {}", "count(distinct({})) < 2", "note in {}", "last({}) = order",
             "no {}(it = \"a\")", "every {}(it = session.customer)")  # fmt: skip
_FIELDS = {
    "find": ("n", "total", "score", "items.price"),
    "approve": ("n",),
    "refund": ("n",),
    "login": (),
}  # fmt: skip
_TEXTS = {
    "find": ("order", "owner", "note", "items.sku", "status"),
    "approve": ("who", "answer"),
    "refund": ("order", "tags"),
    "login": ("user",),
}  # fmt: skip
_OTHERS = (
    'forbid any(file under "/a/b")',
    "before refund require file = null or file under last(find(same order)).file",
    "before refund require file = null or file in find.file",
    'before refund require count(distinct(find.link)) < 2 or last(find).link = "https://b.com/"',
    'before refund require every find.link(it not under "https://a.b.com/a")',
    "before refund require host(last(find).link) = host(last(find(same order)).link)",
    "limit count(refund) per file <= 1 across sessions",
    "limit count(refund) per ref <= 1 in session",
    "before refund require unused find(same ref)",
    'before refund require ref = null or ref = 1 | "a" or ref ~ "b.*"',
    "before refund require ref in (find.ref | refund.ref) or count(distinct(find.ref)) < 3",
    "before refund require no find(ref = this.order) and no find(ref = this.n)",
    "forbid refund(n > 2)",
    "forbid refund(find(same order, status = closed))",
    "forbid any(note = \"b\")",
    "before refund require unused approve(same (order, n), answer = yes)",
    "before refund(n > 0) require unused approve(same order)",
    "before refund { let o = last(find(same order))  require o.owner = session.customer }",
    "before refund { let o = last(find)  require no o.items(price > this.n) }",
    "before refund require sum(last(find(same order)).items.price) >= n",
    "before refund require last(find).n >= last(approve(last(refund).n > n)).n",
    "before refund require last(find(last(approve).n >= n)).order = last(approve).order",
    "before refund require last(find.items).sku = order and last(find.items).n >= n",
    "before refund require last(find(same order)).items(sku = this.order)",
    "before refund require count(pairs(tags, last(find).items)(left = right.sku)) > 0",
    "before refund require max(find(same order).at) >= now - 1 h",
    "before refund require n <= match last(find(same order)).status { open: 2, else: 0 }",
    "before refund require n < match session.seen { open | closed: 2, else: 1 }",
    "before refund require match note { \"a\": n, \"b\": 1, else: 2 } <= count(find) + 1",
    "before refund require find(same note, note = this.note)",
    "before refund require find since approve(n <= this.n)",
    "before refund require count(find since approve(n <= this.n)) > 1",
    "before refund require count(find.at(it > now - 1 h)) < 2",
    "before refund require sum(find(same order).total | refund(same order).n) < 6",
    "before refund require every tags(it in find.order)",
    "before refund require no refund(tags(it = this.order)) since approve(n <= this.n)",
    "before refund { let after(x) = approve(n <= x.n)  require count(find(after(it))) < 2 }",
    "before refund { let more(x) = approve(n > x.n, note = x.note)  require find(no more(it)) }",
    "before refund { let by(x) = approve(who = x.owner)  require find(by(it)) }",
    "before refund { let of(x) = find(x.order in items.sku)  require approve(of(it)) }",
    "before refund { let has(x) = refund(order = x)  require every tags(has(it)) }",
    "before refund { let has(x) = last(find).items(sku = x)  require no tags(has(it)) }",
    "before refund require last(find(n >= this.n)).total >= last(approve(n <= this.n)).n",
    "before approve require every find(no refund(this.order in tags))",
    "before login { let over(x) = approve(n > x.total)  require no find(over(it)) }",
    "before login { let of(x) = find(items(sku = x.order))  require every refund(of(it)) }",
    "before find require count(any within 1 h) < 4",
    "before any require no refund(n = 9) within 1 h",
    "before login require no any - refund",
    'before refund(n > 1) ask "lead"',
    "finally require no refund(n > 2) or approve(answer = yes)",
    "finally require count(find) <= count(refund) + 2",
    "finally require last(find).status != closed",
    "after find(status = open) owe refund(order = this.order, n >= this.n)",
    "after approve(answer = yes) owe login(user = session.customer, note = this.who)",
    "after refund(note = session.user) owe approve(note = session.approver)",
    "limit depth <= 12",
    "limit price <= 20",
    "limit cost <= 18",
    "limit latency <= 22",
    "limit epsilon <= 25",
)  # fmt: skip


class Desk:
    """Draws policies of one desk.

    Args:
        related: whether each filter compares an element with the decided call, or looks into its
            lists.

    Attributes:
        tools, tool_of: the tools of every policy.
    """

    def __init__(self, rng: random.Random, *, related: bool = False) -> None:
        self.rng = rng
        self._related = related
        core = core_of(TOOLS)
        self.tools, self.tool_of = core.tools, core.tool_of

    def core(self, statements: int) -> Core:
        """A core with so many sound statements."""
        texts: list[str] = []
        while len(texts) < statements:
            text = self.statement()
            core = core_of(TOOLS + text)
            try:
                for one in core.statements:
                    Kinds(core).rule(one)
            except Fault:
                continue
            texts.append(text)
        core = core_of("\n".join([TOOLS, *texts]))
        calls = [call for at, tool in enumerate(self.tools) for call in plan_calls(at, tool)]
        return Core(
            name=core.name, version=core.version, tools=core.tools, rules=core.rules,
            plan=core.plan, given=core.given, statements=core.statements, calls=tuple(calls),
        )  # fmt: skip

    def statement(self) -> str:
        """The text of a statement."""
        rng = self.rng
        what = rng.random() / 2 + 0.5 if self._related else rng.random()
        if what < 0.15:
            return rng.choice(_OTHERS)
        if what < 0.25:
            return f"finally require {self._condition()}"
        if what < 0.35:
            return self._owe()
        if what < 0.5:
            return self._limit()
        if what < 0.56:
            return f"before refund require {rng.choice(_OF_LISTS)}"
        parts = [self._condition() for _ in range(rng.choice((1, 1, 1, 2)))]
        on = rng.choice(("refund", "refund", "find", "approve"))
        where = rng.choice(("", "", "(n > 0)", "(" + self._condition() + ")"))
        return f"before {on}{where} require {rng.choice((' and ', ' or ')).join(parts)}"

    def _owe(self) -> str:
        rng = self.rng
        first, paying = (rng.choice(("find", "approve", "refund", "any")) for _ in range(2))
        where = f"({rng.choice(_OWN[first])})" if first in _OWN and rng.random() < 0.4 else ""
        filters = [rng.choice(_KEYS)] if rng.random() < 0.7 else []
        filters += [rng.choice(_OWN[paying])] if paying in _OWN and rng.random() < 0.4 else []
        filters += ["n <= this.n"] if rng.random() < 0.2 else []
        pays = f"({', '.join(filters)})" if filters else ""
        within = rng.choice(("", " within 20 m", " within 1 h", " within 1 d"))
        return f"after {first}{where} owe {paying}{pays}{within}"

    def _limit(self) -> str:
        rng = self.rng
        tool = rng.choice(("find", "approve", "refund", "refund", "any"))
        where = rng.choice(("", "", "(n > 0)", "(note = session.user)", "(kind = a)"))
        counted = f"sum({tool}{where}.n" if rng.random() < 0.5 else f"count({tool}{where}"
        within = rng.choice(("", " within 20 m", " within 1 h", " within 1 d"))
        keys = ("order", "note", "n", "session.user", "session.customer", "day(now)", "n + 1")
        per = ", ".join(rng.sample(keys, rng.choice((0, 1, 1, 2))))
        most = rng.choice(("1", "2", "3", "4", "last(find(same order)).total", "count(login) + 1"))
        scope = rng.choice(("in session", "across sessions"))
        return f"limit {counted}{within}){' per ' + per if per else ''} <= {most} {scope}"

    def _condition(self) -> str:
        rng = self.rng
        tool = rng.choice(("find", "find", "approve", "refund"))
        filters = [rng.choice(_KEYS)] if rng.random() < 0.7 else []
        filters += [rng.choice(_OWN[tool])] if rng.random() < 0.4 else []
        related = 1 if self._related else rng.random()
        filters += [rng.choice(_REST)] if related < 0.15 else []
        filters += [rng.choice(_RELATED[tool])] if related > 0.6 else []
        rng.shuffle(filters)
        source = tool + (f"({', '.join(filters)})" if filters else "")
        modifier = rng.choice(_MODIFIERS) if rng.random() < 0.3 else ""
        what = rng.random()
        if what < 0.05:
            rows = _modified(f"find.{rng.choice(_OF_ROWS)}", modifier)
            return rng.choice(_OF_CALLS[:5]).format(rows)
        if what < 0.45:
            return rng.choice(_OF_CALLS).format(_modified(source, modifier))
        names, shapes = (_FIELDS, _OF_FIELDS) if what < 0.82 else (_TEXTS, _OF_TEXTS)
        if not names[tool]:
            return source
        rows = f"{source}.{rng.choice(names[tool])}"
        if rng.random() < 0.3:
            rows = f"{_modified(source, modifier)}.{rng.choice(names[tool])}"
        else:
            rows = _modified(rows, modifier)
        return rng.choice(shapes).format(rows)


def _modified(source: str, modifier: str) -> str:
    return f"({source}{modifier})" if modifier else source


def plan_calls(at: int, tool: Tool) -> list[PlanCall]:
    """Most calls of a tool in plans, with amounts."""
    rng = random.Random(at)  # the same in each core
    sizes = [len(one.values) + one.optional for one in tool.listed]
    found = []
    for values in product(*map(range, sizes)):
        if rng.random() < 0.8:
            amounts = [rng.randint(0, 5) for _ in range(4)]
            found.append(
                PlanCall(
                    text=f"{tool.name}{values}", tool=at, values=values, cost_low=0,
                    cost_high=amounts[0] * 10**9, price=amounts[1], latency=amounts[2],
                    epsilon=amounts[3] * 10**9,
                )
            )  # fmt: skip
    return found


# States of declared fields.


def state_of(declared: Field, rng: random.Random) -> State:
    """The state of a field that is known."""
    if declared.optional and rng.random() < 0.3:
        return NONE
    if declared.type is None:
        value = rng.choice(declared.values)
        return rest_of(declared.values) if value == "*" else ("s", value)
    return _typed(declared.type, rng)


def _typed(kind: FieldType, rng: random.Random) -> State:
    match kind:
        case TextType():
            return "s", rng.choice("ab")
        case PathType():
            return "p", rng.choice(("/", "/a", "/a/b", "/ab"))
        case UrlType():
            return "u", rng.choice(("https://b.com/", "https://a.b.com/a", "https://a.b.com/ab"))
        case NumberType(whole=whole):
            options: tuple[Any, ...] = (0, 1, 2) if whole else (0, 1, 2, Fraction(5, 2))
            return "n", rng.choice(options)
        case FlagType():
            return "b", rng.random() < 0.5
        case UnionType(of=types):
            return _typed(rng.choice(types), rng)
        case DateType():
            return "t", START + rng.choice((0, DAY, 2 * DAY))
        case NullableType(of=of):
            return ("z", None) if rng.random() < 0.3 else _typed(of, rng)
        case ListType(of=of):
            return "l", tuple([_typed(of, rng) for _ in range(rng.choice((0, 1, 1, 2, 3)))])
        case RecordType(fields=fields):
            return "r", tuple([(one.name, state_of(one, rng)) for one in fields])
    return "t", START + rng.choice((0, HOUR, DAY, DAY + 23 * HOUR))  # a time


def answers_of(tool: Tool, rng: random.Random, *, known: bool) -> dict[str, State]:
    """The states of the answers of a call that is done."""
    return {
        one.name: ("unknown", None) if not known and rng.random() < 0.15 else state_of(one, rng)
        for one in tool.answers
    }
