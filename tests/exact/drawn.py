"""Random policies, questions and sessions over one small set of tools."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from tcc_certs.policy.course import Course
from tcc_certs.policy.meaning import Policy

HOUR = 3_600_000
START = 1_790_000_000_000
HEAD = """# lint: allow TCC709 a test needs no costs
grammar drawn version "1"

given g: text
given l from look.w
tool look(k: text, n: integer 0 .. 2) gives (v: yes | no, m: integer 0 .. 2, w: text) {
  errors mean failed
  price 1
}
tool ok(k: text, d: integer 0 .. 2) gives (v: yes | no) { price 1 price 3 when v = yes }
tool act(k: text, n: integer 0 .. 2, z?: text, e: x | y) {
  errors mean failed
  price 2
  price 4 when e = y
}
tool pack(k: text, d: integer -2 .. 1,
    t: list min 1 max 3 of (s: text, p: integer 0 .. 2, q?: text))
  gives (r: list max 3 of (s: text, p: integer 0 .. 2, q: yes | no | *))
tool over
limit depth <= 40
"""
TOOLS = ("look", "ok", "act", "pack", "over")
FIELDS = {"look": "knvmw", "ok": "kdv", "act": "knze", "pack": "kdtr", "over": ""}
ARGUMENTS = {"look": "kn", "ok": "kd", "act": "knze", "pack": "kdt", "over": ""}


class Drawer:
    """Draws statements.

    Args:
        rng: decides.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def statement(self) -> str:
        """A statement on one line."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.07:
            return f"finally require {self.condition(None, 1)}"
        if kind < 0.12:
            first = rng.choice(("act", "ok", "act(n > 0)"))
            return f"after {first} owe {rng.choice(('over', 'look', 'ok'))}"
        on = rng.choice(
            ("act", "act", "act", "pack", "pack", "pack", "ok", "look", "over", "act | ok", "any",
             "act | look", "act | pack")
        )  # fmt: skip
        if kind < 0.2:
            return f"forbid {on}" if rng.random() < 0.2 else f"forbid {self.restricted(on)}"
        if kind < 0.34:
            return self.limit()
        head = self.restricted(on) if rng.random() < 0.25 else on
        return f"before {head} require {self.condition(on, 2)}"

    def restricted(self, on: str) -> str:
        """A set with a filter over its arguments."""
        fields = self.arguments(on)
        if not fields:
            return on
        inner = self.plain(fields, "")
        return f"({on})({inner})" if "|" in on else f"{on}({inner})"

    def arguments(self, on: str | None) -> str:
        """The arguments that all tools of a set have."""
        if on is None or on == "any":
            return ""
        sets = [set(ARGUMENTS[tool]) for tool in on.split(" | ")]
        return "".join(sorted(set.intersection(*sets)))

    def limit(self) -> str:
        """A limit."""
        rng = self.rng
        if rng.random() < 0.15:
            return f"limit price <= {rng.randint(2, 12)}"
        tool = rng.choice(("act", "act", "ok", "look"))
        where = rng.choice(("", "", "(n > 0)" if tool != "ok" else "", '(k = "a")'))
        within = rng.choice(("", "", " within 1 h"))
        of = "(act | look)" if tool == "look" and rng.random() < 0.3 else tool
        counted = f"count({of}{where}{within})"
        if rng.random() < (0.4 if tool == "act" else 0.5 if of != tool else 0):
            counted = f"sum({of}{where}.n{within})"
        elif tool == "ok" and rng.random() < 0.4:
            counted = f"sum(ok{where}.d{within})"
        per = rng.choice(("", " per k", " per session.g"))
        chosen = self.match("k" if tool == "ok" else "kne"[: 3 if tool == "act" else 2])
        most = rng.choice(("0", "1", "2", "3", "n" if tool != "ok" else "1", chosen))
        return f"limit {counted}{per} <= {most} in session"

    def condition(self, on: str | None, depth: int) -> str:
        """A condition for a decided call of a set; None: at the end."""
        rng = self.rng
        kind = rng.random()
        if depth and kind < 0.3:
            word = rng.choice((" and ", " or "))
            parts = [self.condition(on, 0) for _ in range(2)]
            return "(" + word.join(parts) + ")"
        if depth and kind < 0.36:
            inner = self.condition(on, 0)
            return f"not ({inner})" if not inner.startswith(("no ", "every")) else inner
        fields = self.arguments(on)
        if rng.random() < (0.7 if "t" in fields else 0.2):
            return self.listed(fields)
        if fields and rng.random() < 0.3:
            return self.plain(fields, "")
        kind = rng.random()
        source, tool = self.source(on)
        if kind < 0.3:
            return source
        if kind < 0.45:
            return f"no {source}"
        if kind < 0.7 and tool != "over":
            return f"last({source}){self.about(tool, fields)}"
        if kind < 0.8:
            return f"count({source}) {rng.choice(('<=', '>=', '<'))} {rng.choice('12')}"
        if kind < 0.86 and fields and "k" in fields:
            return f"unused {rng.choice(('ok', 'look'))}(same k{rng.choice(('', ', v = yes'))})"
        if kind < 0.92 and rng.random() < 0.5:
            of = rng.choice(("ok", "pack", "(ok | pack)"))
            same = rng.choice(("", "(same k)")) if "k" in fields else ""
            more = rng.choice(("", "", f" + count({of}{same})", " + count(ok)"))
            return f"sum({of}{same}.d){more} {rng.choice(('<=', '>='))} {rng.choice('0123')}"
        if kind < 0.92 and "n" in fields:
            of = rng.choice(("act", "act", "act", "(act | look)"))
            same = rng.choice(("", "(same k)", "(n > 0)")) if "k" in fields else ""
            return f"sum({of}{same}.n) + n <= {rng.choice('123')}"
        if kind < 0.96:
            return rng.choice(
                ("every look(m > 0)", "every ok(v = yes)", "every look(k = session.g)")
            )
        return rng.choice(("session.l = session.g", 'session.g = "a"'))

    def about(self, tool: str, fields: str) -> str:
        """A comparison of a field of the last element."""
        rng = self.rng
        found = []
        for name in FIELDS[tool]:
            if name == "v":
                found += [".v = yes", ".v != no"]
            elif name in "nmd":
                found += [f".{name} >= 1", f".{name} = 0"]
                found += [f".{name} = n"] if "n" in fields else []
            elif name == "e":
                found += [".e = x"]
                found += [f".{name} <= {self.match(fields)}"] if fields else []
            elif name == "z":
                found += [".z = null"]
            elif name in "kw":
                found += [f".{name} = session.g"]
                found += [f".{name} = k"] if "k" in fields else []
        return rng.choice(found)

    def match(self, fields: str) -> str:
        """A number by the value of an argument, or of an attribute."""
        rng = self.rng
        one, two, three = rng.sample("012", 3)
        found = [f'match session.g {{ "a": {one}, "b" | "c": {two}, else: {three} }}']
        if "e" in fields:
            found.append(f"match e {{ x: {one}, y: {two} }}")
        if "k" in fields:
            found.append(f'match k {{ "a": {one}, else: {two} }}')
        if "n" in fields:
            found.append(f"match n {{ 0: {one}, 1 | 2: n, else: {two} }}")
        return rng.choice(found)

    def listed(self, fields: str) -> str:
        """A condition about the elements of a list."""
        rng = self.rng
        found = ["last(pack).r", "last(pack(same k)).r" if "k" in fields else "last(pack).t",
                 "pack.r", "pack.t"]  # fmt: skip
        if "t" in fields and rng.random() < 0.15:
            other = rng.choice(("last(pack).t", "last(pack).r", "t"))
            word = rng.choice(("every ", "no ", ""))
            inner = rng.choice(("left.p <= right.p", "left.s = right.s", 'right.s = "a"'))
            return f"{word}pairs(t, {other})({inner})"
        source = rng.choice([*found, "t", "t", "t", "t"] if "t" in fields else found)
        filters = [self.of_row(fields) for _ in range(rng.choice((1, 1, 2)))]
        inner = f"({', '.join(filters)})"
        if source.startswith("pack.") and rng.random() < 0.4:
            about = rng.choice(("p >= 1", "p = 0", 's = "a"', "s = session.g", "p != 1"))
            return f"{rng.choice(('', 'not '))}last({source}{inner}).{about}"
        kind = rng.random()
        if kind < 0.3:
            return f"{source}{inner if rng.random() < 0.9 else ''}"
        if kind < 0.5:
            return f"no {source}{inner}"
        if kind < 0.75:
            first = f"({self.of_row(fields)})" if rng.random() < 0.3 else ""
            return f"every {source}{first}{inner}"
        if kind < 0.87:
            value = "k" if "k" in fields else '"a"'
            some = f"{source}{rng.choice(('', f'({self.of_row(fields)})'))}"
            return f"{value} {rng.choice(('in', 'not in'))} {some}.s"
        term = f"count({source}{inner})"
        if rng.random() < 0.3:
            term = f'sum({source}, match s {{ "a": p, else: 1 }})'
        return f"{term} {rng.choice(('<=', '>='))} {rng.choice('12')}"

    def of_row(self, fields: str) -> str:
        """A condition on a row."""
        found = ['s = "a"', 's != "a"', 's ~ "a|b"', "s = session.g", "p >= 1", "p = 0", "p != 1",
                 'p = 2 or s = "b"', 'p <= match s { "a": 1, else: 0 }', "q != null",
                 'p > 0 and s = "a"']  # fmt: skip
        found += ["s = this.k", "s != this.k"] if "k" in fields else []
        found += ["p <= this.n", "p = this.n"] if "n" in fields else []
        return self.rng.choice(found)

    def plain(self, fields: str, this: str) -> str:
        """A comparison of arguments."""
        rng = self.rng
        found = []
        if "k" in fields:
            found += ['k = "a"', "k != session.g", "k = session.l", "k = session.g", 'k ~ "[ac]"']
        if "n" in fields:
            found += ["n >= 1", "n = 0", "n != 1", "n in 1 .. 2"]
            found += [f"n <= {self.match(fields)}", f"n = {self.match(fields)}"]
        if "d" in fields:
            found += ["d >= 1", "d < 0"]
        if "z" in fields:
            found += ["z != null", "z = k", 'z = "a"', "z = null"]
        if "e" in fields:
            found += ["e = x", "e != y"]
        return rng.choice(found)

    def source(self, on: str | None) -> tuple[str, str]:
        """A source, and its tool."""
        rng = self.rng
        tool = rng.choice(("look", "look", "ok", "ok", "act", "pack", "over"))
        fields = self.arguments(on)
        filters = []
        if FIELDS[tool]:
            if "k" in fields and "k" in FIELDS[tool] and rng.random() < 0.6:
                filters.append("same k")
            if rng.random() < 0.4:
                filters.append(self.element(tool, fields))
        found = f"{tool}({', '.join(filters)})" if filters else tool
        kind = rng.random()
        if kind < 0.12:
            mark = rng.choice(("over", "ok", "act", "look(n = 0)"))
            found = f"({found} since {mark})" if rng.random() < 0 else f"{found} since {mark}"
        elif kind < 0.2:
            found = f"{found} within 1 h"
        return found, tool

    def element(self, tool: str, fields: str) -> str:
        """A condition on an element."""
        rng = self.rng
        found = []
        if "v" in FIELDS[tool]:
            found += ["v = yes", "v != yes"]
        if "n" in FIELDS[tool]:
            found += ["n >= 1", "n = 0"]
            found += ["same n", "n >= this.n"] if "n" in fields else []
        if "d" in FIELDS[tool]:
            found += ["d >= 1", "d <= 0"]
        if "m" in FIELDS[tool]:
            found += ["m >= 1", "m = n"] + (["m = this.n", "m > this.n"] if "n" in fields else [])
        if "w" in FIELDS[tool]:
            found += ["w = session.g", "w = k"] + (["w = this.k"] if "k" in fields else [])
        if "z" in FIELDS[tool]:
            found += ["z = k", "z != null"] + (["same z"] if "z" in fields else [])
        if "e" in FIELDS[tool]:
            found += ["e = x"] + (["same e"] if "e" in fields else [])
        if "k" in FIELDS[tool]:
            found += ["k = session.g", "k = session.l"]
            found += ["ok(k = session.g)"] if rng.random() < 0.2 else []
        return rng.choice(found)


# Sessions.


@dataclass(frozen=True, slots=True)
class Step:
    """A call of a drawn session."""

    tool: str
    arguments: dict[str, Any]
    outcome: str
    answer: dict[str, Any]
    later: int


_ROWS = tuple([{"s": s, "p": p} for s, p in product("ab", range(3))])
_LISTS = [[], *[[row] for row in _ROWS], *[[_ROWS[at], _ROWS[at - 2]] for at in range(1, 5)]]
_VALUES: dict[str, tuple[Any, ...]] = {
    "t": (*_LISTS[1:9], [{**_ROWS[2], "q": "a"}, *_LISTS[-1]]),
    "k": ("a", "b"),
    "n": (0, 1, 2),
    "d": (-2, 0, 1, 2),
    "z": (None, "a", "b"),
    "e": ("x", "y"),
}
_AMOUNTS = {"ok": (0, 1, 2), "pack": (-2, 0, 1)}  # of `d`


def calls_of(tool: str) -> Iterator[dict[str, Any]]:
    """All arguments of a tool."""
    names = ARGUMENTS[tool]
    for values in product(*[_VALUES[name] for name in names]):
        if "d" in names and values[names.index("d")] not in _AMOUNTS[tool]:
            continue
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


_CALLS = {tool: tuple(calls_of(tool)) for tool in TOOLS}
_ANSWERS: dict[str, tuple[Any, ...]] = {
    "r": (
        5,
        [{}],
        *[
            [{**row, "q": q} for row, q in zip(some, ("yes", "odd"), strict=False)]
            for some in _LISTS
        ],
    ),
    "v": ("yes", "no", "odd"),
    "m": (0, 1, 2, "odd"),
    "w": ("a", "b", 5),
}


def drawn_step(rng: random.Random) -> Step:
    """A random call with its outcome."""
    tool = rng.choice(TOOLS[:-1] if rng.random() < 0.93 else TOOLS)
    outcome = rng.choice(("done", "done", "done", "done", "done", "unknown", "failed", "answered"))
    if outcome == "answered" and tool not in ("look", "act"):
        outcome = "failed"
    answers = {"look": "vmw", "ok": "v", "pack": "r"}.get(tool, "")
    answer = {name: rng.choice(_ANSWERS[name]) for name in answers if rng.random() < 0.95}
    later = rng.choice((0, 0, 1, HOUR // 2, HOUR, HOUR + 1))
    return Step(tool, dict(rng.choice(_CALLS[tool])), outcome, answer, later)


def breaking(policy: Policy, rng: random.Random, length: int) -> list[Step] | None:
    """A random session that breaks the last statement of a policy and no other one."""
    asked = len(policy.rules) - 1
    given = {"g": rng.choice("ab")}
    course = Course(policy, given)
    now = START
    steps: list[Step] = []
    tools = policy.rules[asked].tools
    for _ in range(length):
        for tool in TOOLS if tools is not None else ():
            if tools is not None and tool in tools:
                for arguments in _CALLS[tool]:
                    found = {one.statement for one in course.check(tool, arguments, now)}
                    if found == {asked}:
                        return [*steps, Step(tool, dict(arguments), "", {}, 0)]
        if course.unmet(now) == [asked]:
            return steps
        for _ in range(8):
            step = drawn_step(rng)
            if not course.check(step.tool, step.arguments, now + step.later):
                break
        else:
            return None
        now += step.later
        call = course.call(step.tool, step.arguments, now)
        course.record(call, step.outcome, step.answer)
        steps.append(step)
    return None
