"""Lint rules on answers and conditions: TCC717 to TCC720, TCC725 and TCC726.

TCC717: a limit counts calls of a tool of a server that may answer an error, and whether an error
counts is not said. TCC718: an answer, or a field at a place of its own, that nothing compares.
TCC719: a condition that no values meet, decided from what listed and open fields may be: values,
least and greatest numbers, lengths and patterns; a condition that is not decided is none. TCC720:
an attribute of the session from a text without a pattern. TCC725: a `forbid` counts failed calls
whose error the agent has read. TCC726: a look-up's set leaves calls of its tools out, which a
look-up does not: it is of the latest call of these tools.
Specification: docs/lint.md. Cost: linear in the statements, times the values of a listed field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tcc_certs.values.text_pattern import pattern_of
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Diagnostic, Report
from tcc_compiler.language.source import Region, Source
from tcc_compiler.language.values import REST
from tcc_compiler.lint.finding import LintFinding, listed, statement_text
from tcc_compiler.resolve import policies
from tcc_compiler.resolve.amounts import Steps
from tcc_compiler.resolve.calls import Chosen, Scope
from tcc_compiler.resolve.decided import value_of
from tcc_compiler.resolve.fields import MAX_ELEMENTS, opened_json
from tcc_compiler.resolve.program import Program
from tcc_compiler.resolve.relations import Made
from tcc_compiler.resolve.statements import monitored
from tcc_compiler.resolve.tools import ResolvedTool, tool_of


def policy_lints(program: Program, sources: Sequence[Source]) -> Iterator[LintFinding]:
    """TCC717 to TCC720, TCC725 and TCC726 of a grammar without errors."""
    report = Report(list(sources))
    steps = Steps()
    made = {name: tool_of(statement, steps, report) for name, statement in program.tools.items()}
    tools = {name: tool for name, tool in made.items() if tool is not None}
    scope = Scope(program=program, tools=made, report=report)
    session = policies.attributes_of(program, scope)
    statements = list(program.policies)
    for statement in program.monitors:
        inner = monitored(statement, scope)
        statements += [] if inner is None else [inner]
    resolved = [(one, policies.policy_of(one, scope, session)) for one in statements]
    stated = [(one, policy) for one, policy in resolved if policy is not None]
    rules = _Rules(program, sources, tools, session)
    yield from rules.errors(stated)
    yield from rules.unread(stated)
    yield from rules.never(stated)
    yield from rules.lets()


Stated = Sequence[tuple[ast.PolicyStatement, policies.ResolvedPolicy]]


class _Rules:
    def __init__(
        self,
        program: Program,
        sources: Sequence[Source],
        tools: Mapping[str, ResolvedTool],
        session: policies.Attributes,
    ) -> None:
        self.program = program
        self.sources = sources
        self.tools = tools
        self.session = session

    def _warning(self, code: str, region: Region, message: str, hint: str) -> LintFinding:
        span = self.sources[region.source].span(region)
        return LintFinding(
            diagnostic=Diagnostic(
                code=code, severity="warning", message=message, span=span, hint=hint
            )
        )

    # Errors that a tool answers.

    def errors(self, stated: Stated) -> Iterator[LintFinding]:
        """TCC717 and TCC725."""
        counted = [
            (one.region, [one.pattern.name.text])
            for one in self.program.limits
            if one.kind == "uses" and one.op == "<=" and one.pattern is not None
        ]
        banned = [
            (one.region, [part.name.text for part in one.patterns[: 1 + (one.order == "with")]])
            for one in self.program.forbids
            if one.order in ("before", "with")
        ]
        for statement, policy in stated:
            names = [name for part in policy.parts for name in (part.calls or _NONE).tools]
            if policy.kind == "uses" and policy.order == "<=":
                counted.append((statement.region, names))
            if policy.kind == "forbid" and policy.order in ("before", "with"):
                both = policy.own.tools if policy.own and policy.order == "with" else ()
                banned.append((statement.region, [*names, *both]))
        for region, names in counted:
            found = [name for name in dict.fromkeys(names) if self._unsaid(name)]
            if found:
                yield self._warning(
                    "TCC717", region,
                    f"{listed(found)} may answer an error, and whether it counts then is not said",
                    "write `errors mean failed` in its braces if an error changes nothing: then "
                    "it does not count; else allow this",
                )  # fmt: skip
        for region, names in banned:
            found = [name for name in dict.fromkeys(names) if self._readable(name)]
            if found:
                yield self._warning(
                    "TCC725", region,
                    f"{listed(found)} may fail with an error that the agent has read: such a call "
                    "counts here, though it failed",
                    "allow this where it is meant: what was read is known",
                )  # fmt: skip

    def _unsaid(self, name: str) -> bool:
        tool = self.program.tools.get(name)
        return tool is not None and _has(tool, ast.BindMcp) and not _has(tool, ast.Errors)

    def _readable(self, name: str) -> bool:
        tool = self.program.tools.get(name)
        return tool is not None and _has(tool, ast.Errors)

    # Fields that nothing compares.

    def unread(self, stated: Stated) -> Iterator[LintFinding]:
        """TCC718, one finding for each tool of the grammar's own file."""
        used = self._used(stated)
        for name, statement in self.program.tools.items():
            if statement.region.source:
                continue
            answers = [one for one in statement.answers if isinstance(one, ast.OpenDeclaration)]
            placed = [one for one in statement.opened if isinstance(one, ast.OpenDeclaration)]
            fields = [one.name.text for one in answers]
            fields += [one.name.text for one in placed if one.at is not None]
            left = [field for field in fields if (name, field) not in used]
            if left:
                yield self._warning(
                    "TCC718", statement.name.region,
                    f"nothing compares {listed(left)} of `{name}`",
                    "compare it in a `where` or a `same`, or take it away",
                )  # fmt: skip

    def _used(self, stated: Stated) -> set[tuple[str, str]]:
        """The fields that statements name, each with its tool."""
        used: set[tuple[str, str]] = set()
        compared = [(one.first, one.second, one.same) for one in self.program.requires]
        compared += [(one.patterns[0], one.patterns[-1], one.same) for one in self.program.forbids]
        for first, second, same in compared:
            used |= {(first.name.text, pair.first.text) for pair in same}
            used |= {(second.name.text, pair.second.text) for pair in same}
        for limit in self.program.limits:
            if limit.total is not None:
                used.add((limit.total[0].text, limit.total[1].text))
            if limit.per is not None and limit.pattern is not None:
                used.add((limit.pattern.name.text, limit.per.text))
        for let in self.program.lets:
            used |= {(tool.text, field.text) for tool, field in let.sources}
            names = self._looked_in(let.name.text)
            used |= {(tool, key.text) for tool in names for key in let.keys}
        for _, policy in stated:
            own = () if policy.own is None else policy.own.tools
            for part in (*policy.parts, *policy.unless):
                seen = () if part.calls is None else part.calls.tools
                mine = own or seen
                for relation in (*part.relations, *part.where):
                    self._named(relation, mine, seen, used)
            counted = [name for part in policy.parts for name in (part.calls or _NONE).tools]
            if policy.total is not None:
                counted = [policy.total[0]]
                used.add((policy.total[0], policy.total[1]))
            for term in policy.per:
                self._named(term, counted, (), used)
        return used

    def _looked_in(self, name: str) -> Sequence[str]:
        """The tools that a look-up looks in."""
        chosen = self.session.calls.get(name)
        if chosen is not None:
            return chosen.tools
        lets = [let for let in self.program.lets if let.name.text == name]
        return [tool.text for let in lets for tool, _ in let.sources]

    def _named(
        self, made: Made, own: Sequence[str], seen: Sequence[str], used: set[tuple[str, str]]
    ) -> None:
        if made[0] in ("own", "seen") and isinstance(made[1], str):
            used |= {(tool, made[1]) for tool in (own if made[0] == "own" else seen)}
            return
        if made[0] == "look":
            used |= {(tool, made[3]) for tool in self._looked_in(made[1])}
        for part in made[1:]:
            self._inside(part, own, seen, used)

    def _inside(
        self, part: Any, own: Sequence[str], seen: Sequence[str], used: set[tuple[str, str]]
    ) -> None:
        if not isinstance(part, tuple) or not part:
            return
        if isinstance(part[0], str):
            self._named(part, own, seen, used)
            return
        for inner in part:
            self._inside(inner, own, seen, used)

    # Conditions that no values meet.

    def never(self, stated: Stated) -> Iterator[LintFinding]:
        """TCC719."""
        for statement, policy in stated:
            own = () if policy.own is None else policy.own.tools
            parts = zip(
                (*statement.before, *statement.unless),
                (*policy.parts, *policy.unless),
                strict=False,
            )
            for written, part in parts:
                seen = () if part.calls is None else part.calls.tools
                sides = _Sides(self.tools, own or seen, seen)
                for region, relation in _conditions(statement, written, part):
                    if sides.is_never(relation):
                        yield self._warning(
                            "TCC719", region,
                            f"no values meet {statement_text(self.sources, region)}",
                            "compare with a value that the field may have",
                        )  # fmt: skip

    # Attributes of the session.

    def lets(self) -> Iterator[LintFinding]:
        """TCC720 and TCC726."""
        for let in self.program.lets:
            chosen = self.session.calls.get(let.name.text)
            if chosen is not None and self._leaves_out(chosen):
                yield self._warning(
                    "TCC726", let.name.region,
                    f"`{let.name.text}` is of the latest call of {listed(chosen.tools)}, whatever "
                    "it asked for or was answered: a pattern and `-` choose tools alone here",
                    "name the tools, and put what their calls have to be into a `where`",
                )  # fmt: skip
            for name, field in let.sources if not let.keys else ():
                tool = self.tools[name.text]
                bare = any(
                    one.name == field.text
                    and one.members["type"] == "text"
                    and "pattern" not in one.members
                    for one in tool.answers
                )
                if bare:
                    yield self._warning(
                        "TCC720", field.region,
                        f"`session.{let.name.text}` is the first text that `{name.text}` answers "
                        f"as `{field.text}`, whatever it is: an error's, too",
                        f'give the answer a pattern: {field.text}: text ~ "[a-z0-9_]+"',
                    )  # fmt: skip

    def _leaves_out(self, calls: Chosen) -> bool:
        """Whether a set has not all calls of its tools."""
        if calls.op == "-" or any(map(self._leaves_out, calls.items)):
            return True
        if calls.selection is None:
            return False
        parameters = self.tools[calls.selection.tool].parameters
        return any(len(bound) < len(parameters[at].values) for at, bound in calls.selection.where)


@frozen
class _NoTools:
    tools: tuple[str, ...] = ()


_NONE = _NoTools()


def _has(tool: ast.ToolStatement, kind: type) -> bool:
    return any(isinstance(attribute, kind) for attribute in tool.attributes)


def _conditions(
    statement: ast.PolicyStatement, written: ast.Alternative, part: policies.PolicyPart
) -> Iterable[tuple[Region, Made]]:
    """The relations of an alternative, each with its place."""
    keys = written.keys or statement.keys
    for pair, relation in zip(keys, part.relations, strict=False):
        yield pair.first.region, relation
    for term, relation in zip(written.where, part.where, strict=True):
        yield term.region, relation


# What a term may be.


@frozen
class _Listed:
    """One of some values."""

    values: frozenset[tuple[str, Any]]


@frozen
class _Number:
    """A number between two, where they are given."""

    low: Fraction | None = None
    high: Fraction | None = None


@frozen
class _Text:
    """A text of so many characters, all of it of the pattern."""

    least: int
    most: int
    pattern: str | None


_Domain = _Listed | _Number | _Text | None


class _Sides:
    """What the terms of a condition may be, from the declarations of the tools."""

    def __init__(
        self, tools: Mapping[str, ResolvedTool], own: Sequence[str], seen: Sequence[str]
    ) -> None:
        self.own = [tools[name] for name in own]
        self.seen = [tools[name] for name in seen]

    def is_never(self, made: Made) -> bool:
        """Whether a relation is true of no values."""
        match made:
            case ("some_of", _, relations):
                return any(self.is_never(one) for one in relations)
            case ("in", left, ("constants", values)):
                return _apart(self.domain(left), _constants(values))
            case ("not in", left, ("constants", values)):
                return _within(self.domain(left), _constants(values).values)
            case ("~" | "!~", left, source):
                domain = self.domain(left)
                if not isinstance(domain, _Listed):
                    return False
                texts = [value for kind, value in domain.values if kind == "text"]
                hits = [pattern_of(source).matches(text) for text in texts]
                return (
                    not any(hits)
                    if made[0] == "~"
                    else all(hits) and len(hits) == len(domain.values)
                )
            case ("=", left, right):
                return _apart(self.domain(left), self.domain(right))
            case ("!=", left, right):
                one = self.domain(right)
                single = isinstance(one, _Listed) and len(one.values) == 1
                return (
                    single and isinstance(one, _Listed) and _within(self.domain(left), one.values)
                )
            case ("<" | "<=" | ">" | ">=" as op, left, right):
                low, high = (left, right) if op[0] == "<" else (right, left)
                return _not_below(self.domain(low), self.domain(high), op in ("<=", ">="))
        return False

    def domain(self, made: Made) -> _Domain:
        """What a term may be; None where that is not known."""
        match made:
            case ("own" | "seen", str(name)):
                tools = self.own if made[0] == "own" else self.seen
                return _union([_field(tool, name) for tool in tools])
            case ("text" | "number" | "word" | "ms", value):
                kind = "number" if made[0] == "ms" else made[0]
                return _Listed(values=frozenset([(kind, value)]))
            case ("count", ("own" | "seen", str(name)), *rest):
                tools = self.own if made[1][0] == "own" else self.seen
                sizes = [_sizes(tool, name) for tool in tools]
                least = min((low for low, _ in sizes), default=0)
                most = max((high for _, high in sizes), default=0)
                return _Number(low=Fraction(0 if rest else least), high=Fraction(most))
            case ("sum", parts):
                return self._sum(parts)
            case ("max", one, other):
                ends = _ends(self.domain(one)), _ends(self.domain(other))
                lows = [low for low, _ in ends if low is not None]
                highs = [high for _, high in ends if high is not None]
                high = max(highs) if len(highs) == 2 else None
                return _Number(low=max(lows, default=None), high=high)
        return None

    def _sum(self, parts: Sequence[tuple[Made, Fraction]]) -> _Domain:
        low: Fraction | None = Fraction(0)
        high: Fraction | None = Fraction(0)
        for made, by in parts:
            first, last = _ends(self.domain(made))
            if by < 0:
                first, last = last, first
            low = None if low is None or first is None else low + by * first
            high = None if high is None or last is None else high + by * last
        return _Number(low=low, high=high)


def _constants(values: Sequence[tuple[str, Any]]) -> _Listed:
    return _Listed(values=frozenset(values))


def _field(tool: ResolvedTool, name: str) -> _Domain:
    place = tool.places.get(name)
    if place is not None:
        texts = tool.parameters[place].values
        if REST in texts:
            return None
        values = [value_of(text) for text in texts]
        return _Listed(values=frozenset(value for value in values if value is not None))
    members = _members(tool, name)
    match members.get("type"):
        case "number" | "integer":
            low, high = members.get("low"), members.get("high")
            return _Number(
                low=None if low is None else Fraction(low),
                high=None if high is None else Fraction(high),
            )
        case "text":
            pattern = members.get("pattern")
            return _Text(least=members["min"], most=members["max"], pattern=pattern)
    return None


def _members(tool: ResolvedTool, name: str) -> Mapping[str, Any]:
    """An open field as the core has it; empty where the tool has none of that name."""
    for one in (*tool.arguments, *tool.answers):
        if one.name == name:
            return one.members
    opened = tool.opened.get(name)
    members = None if opened is None else opened_json(opened)
    return members if isinstance(members, dict) else {}


def _sizes(tool: ResolvedTool, name: str) -> tuple[int, int]:
    """The least and the greatest length of a list."""
    members = _members(tool, name)
    return members.get("min", 0), members.get("max", MAX_ELEMENTS)


def _union(domains: Sequence[_Domain]) -> _Domain:
    """What is in one of several domains: of one kind, else not known."""
    if domains and all(isinstance(one, _Listed) for one in domains):
        values = [one.values for one in domains if isinstance(one, _Listed)]
        return _Listed(values=frozenset().union(*values))
    if domains and all(isinstance(one, _Number) for one in domains):
        lows = [one.low for one in domains if isinstance(one, _Number) and one.low is not None]
        highs = [one.high for one in domains if isinstance(one, _Number) and one.high is not None]
        whole = len(domains)
        return _Number(
            low=min(lows) if len(lows) == whole else None,
            high=max(highs) if len(highs) == whole else None,
        )
    return domains[0] if len(domains) == 1 else None


def _ends(domain: _Domain) -> tuple[Fraction | None, Fraction | None]:
    """The least and the greatest number of a domain, where there are any."""
    if isinstance(domain, _Number):
        return domain.low, domain.high
    if isinstance(domain, _Listed) and {kind for kind, _ in domain.values} == {"number"}:
        numbers = [value for _, value in domain.values]
        return min(numbers), max(numbers)
    return None, None


def _apart(one: _Domain, other: _Domain) -> bool:
    """Whether no value is in both."""
    if isinstance(one, _Listed) and isinstance(other, _Listed):
        return not one.values & other.values
    if isinstance(other, _Listed):
        one, other = other, one
    if isinstance(one, _Listed) and isinstance(other, _Text):
        return not any(kind == "text" and _fits(value, other) for kind, value in one.values)
    return _not_below(one, other, True) or _not_below(other, one, True)


def _fits(text: str, of: _Text) -> bool:
    if not of.least <= len(text) <= of.most:
        return False
    return of.pattern is None or pattern_of(of.pattern).matches(text)


def _within(domain: _Domain, values: frozenset[tuple[str, Any]]) -> bool:
    """Whether every value of a domain is one of these."""
    return isinstance(domain, _Listed) and domain.values <= values


def _not_below(low: _Domain, high: _Domain, equal: bool) -> bool:
    """Whether no number of the first is below one of the second, or equal where that counts."""
    least, most = _ends(low)[0], _ends(high)[1]
    if least is None or most is None:
        return False
    return least > most if equal else least >= most
