"""The canonical texts of the statements of version 1.2, as a grammar writes them.

Normative text: docs/spec/core.md, section 7.  They stand in the header of a session's ledger and in
refusals.  Cost: linear in the statement.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core import policies
from tcc_certs.formats.codec import encode, is_identifier, written


class Wording:
    """Renders statements as a grammar writes them.

    Args:
        tools: the names of the core's tools.
    """

    def __init__(self, tools: Sequence[str]) -> None:
        self._tools = tools

    def of(self, policy: policies.Policy) -> str:
        """A statement."""
        match policy:
            case policies.Need(order=order, alternatives=some, of=of):
                if order == "before" and len(some) == 1 and some[0].calls is None:
                    return f"require {self._set(of)} {self._alternative(some[0])}"
                words = "before each" if order == "each" else "before"
                return f"require {self.alternatives(some)} {words} {self._set(of)}"
            case policies.Ban(alternatives=some, of=of, unless=unless):
                lifts = f" unless {self.alternatives(unless)}" if unless else ""
                return f"forbid {self.alternatives(some)} before {self._set(of)}{lifts}"
            case policies.Apart(one=one, other=other, same=same):
                return f"forbid {self._set(one)} with {self._set(other)}{self._same(same)}"
            case policies.Owe(first=first, of=of, same=same):
                return f"require {self._set(first)} after {self._set(of)}{self._same(same)}"
            case policies.Count(of=of, value=value, where=where):
                such = f" where {self.relations(where)}" if where else ""
                return f"limit uses({self._set(of)}{such}){self._bound(policy, value)}"
            case policies.Total(tool=tool, parameter=name, value=most):
                field = f"{written(self._tools[tool])}.{written(name)}"
                return f"limit sum({field}){self._bound(policy, most)}"

    def owed(self, of: policies.Owe) -> str:
        """What has to come."""
        return self._set(of.first) + self._same(of.same)

    def set_of(self, calls: policies.Tree) -> str:
        """A set of calls."""
        return self._set(calls)

    def _bound(self, of: policies.Count | policies.Total, value: object) -> str:
        per = f" per {', '.join(map(self._term, of.per))}" if of.per else ""
        window = "" if of.within is None else f" within {_duration(of.within)}"
        return f"{per} <= {value}{window}{' across sessions' * of.across}"

    def alternatives(self, some: Sequence[policies.Alternative]) -> str:
        """Alternatives, any of which would do."""
        return " or ".join(map(self._alternative, some))

    def _alternative(self, one: policies.Alternative) -> str:
        words = ["last"] * one.last
        words += [str(one.least)] if one.least > 1 else []
        if one.calls is not None:
            words.append(self._set(one.calls) + self._same(one.same))
        words += [f"where {self.relations(one.where)}"] if one.where else []
        words += [] if one.within is None else [f"within {_duration(one.within)}"]
        return " ".join(words)

    def _same(self, same: Sequence[tuple[str, policies.Tree]]) -> str:
        keys = [
            written(name) if term == ("own", name) else f"{written(name)} = {self._term(term)}"
            for name, term in same
        ]
        return f" same {', '.join(keys)}" if keys else ""

    def relations(self, relations: Sequence[policies.Tree]) -> str:
        """Relations that all have to hold."""
        return ", ".join(map(self._relation, relations))

    def _set(self, calls: policies.Tree, inside: bool = False) -> str:
        match calls:
            case ("calls", tool, where):
                bound = [f"{written(name)}={'|'.join(values)}" for name, values in where]
                name = written(self._tools[tool])
                return f"{name}({','.join(bound)})" if bound else name
            case ("or", sets):
                text = " | ".join([self._set(one, True) for one in sets])
            case ("but", one, other):
                text = f"{self._set(one, True)} - {self._set(other, True)}"
            case _:
                return "any"
        return f"({text})" if inside else text

    def _term(self, tree: policies.Tree, inside: bool = False) -> str:
        match tree:
            case ("s", text):
                return encode(text).decode()
            case ("n" | "b", text):
                return str(text)
            case ("z",):
                return "null"
            case ("ms", size):
                return _duration(size)
            case ("own" | "seen" | "session" as side, name, *part):
                bare = written(name) if side != "own" or is_identifier(name) else f"own.{written(name)}"
                first = bare if side == "own" else f"{side}.{bare}"
                return ".".join([first, *map(written, part)])
            case ("as", name, *part):
                return ".".join([name, *map(written, part)])
            case ("now",):
                return "now"
            case ("max", one, other):
                return f"max({self._term(one)}, {self._term(other)})"
            case ("count", of, *relation):
                such = "".join([self._about_it(one) for one in relation])
                return f"count({self._term(of)}{such})"
            case ("look", name, keys, of):
                return f"{name}({', '.join(map(self._term, keys))}).{written(of)}"
            case ("list", items):
                return f"({', '.join(map(self._term, items))})"
            case ("sum", items):
                text = self._sum(items)
                return f"({text})" if inside else text
        return "it"

    def _sum(self, items: Sequence[tuple[str, policies.Tree]]) -> str:
        text = ""
        for factor, term in items:
            size = factor.removeprefix("-")
            part = self._term(term, True) if size == "1" else f"{size} * {self._term(term, True)}"
            if not text:
                text = f"-{part}" if factor != size else part
            else:
                text += f" {'-' if factor != size else '+'} {part}"
        return text

    def _about_it(self, relation: policies.Tree) -> str:
        """A relation about the elements of a list that was named."""
        op, _, right = relation
        return f" {op} {encode(right).decode() if op in ('~', '!~') else self._term(right)}"

    def _relation(self, tree: policies.Tree) -> str:
        match tree:
            case ("every", of, relation):
                return f"every {self._term(of)}{self._about_it(relation)}"
            case ("all" | "some" as word, lists, relations):
                named = ", ".join([f"{self._term(of)} as {name}" for of, name in lists])
                start = "every" if word == "all" else "some"
                return f"{start} {named} ({self.relations(relations)})"
            case ("?", (_, left, _) as relation):
                return f"{self._term(left)}?{self._about_it(relation)}"
            case (_, left, _):
                return f"{self._term(left)}{self._about_it(tree)}"
        return ""


_UNITS = ((3_600_000, "h"), (60_000, "m"), (1000, "s"))


def _duration(ms: int) -> str:
    found = next(((size, unit) for size, unit in _UNITS if ms and ms % size == 0), (1, "ms"))
    return f"{ms // found[0]} {found[1]}"
