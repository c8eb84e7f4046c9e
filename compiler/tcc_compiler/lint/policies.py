"""The statements of a policy for the lints: their resolved rules, and the author's nodes.

:mod:`tcc_certs.policy.kinds` resolves all words. A lint analyses the rule of a statement. Its
message shows the author's node of a condition or source of this rule.
Cost: linear in the expanded statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from tcc_certs.policy import forms, nodes as n
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.forms import Condition, Source, Term
from tcc_certs.policy.kinds import Kinds, walk
from tcc_certs.values.declared import FlagType, NumberType, PathType, TextType, UrlType, json_of
from tcc_certs.values.fields import DateType, Field, NullableType, TimeType
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Span
from tcc_compiler.lint.finding import LintFinding
from tcc_compiler.resources import Place

MOST_TOOLS = 32  # the largest set whose tools a lint looks at one by one
_MOST_TEXT = 240  # the most characters of a part of a statement in a message

# Typical positive and negative answers of a person or a test.
_GOOD = frozenset({
    "yes", "ok", "okay", "approve", "approved", "accept", "accepted", "allow", "allowed", "grant",
    "granted", "confirm", "confirmed", "agree", "agreed", "pass", "passed", "success", "succeeded",
    "green", "valid", "clean", "safe", "true", "complete",
})  # fmt: skip
_BAD = frozenset({
    "no", "deny", "denied", "decline", "declined", "reject", "rejected", "refuse", "refused",
    "disallow", "disallowed", "disagree", "fail", "failed", "failure", "error", "red", "invalid",
    "dirty", "unsafe", "false", "short", "incomplete", "block", "blocked",
})  # fmt: skip
# Typical names of such answers.
_ANSWERS = frozenset({
    "answer", "verdict", "decision", "result", "outcome", "approved", "approval", "ok", "okay",
    "passed", "success", "allowed", "granted", "confirmed", "accepted", "response", "state",
    "status", "reply", "yes",
})  # fmt: skip
# Arguments with these names are prose or options of a query: they do not identify an object.
_NO_KEYS = frozenset({
    "message", "text", "body", "summary", "reason", "content", "query", "comment", "description",
    "note", "notes", "title", "doc", "prompt", "question", "page", "per_page", "perPage", "limit",
    "offset", "sort", "cursor", "after", "language", "format", "k", "count", "since",
})  # fmt: skip


@frozen(kw_only=False)
class Use:
    """A source (a set of calls or elements) in a statement.

    Attributes:
        kind: the way of use: ``some``, ``last``, ``count`` and so on.
        node: the author's node.
        wanted: True if more elements can only help: the source is not under `not` or `no`.
        around: the condition that contains it.
    """

    kind: str
    source: Source
    node: n.Node
    wanted: bool
    around: Condition

    @property
    def tools(self) -> Sequence[str]:
        """The tools of its calls, sorted; empty if it is no set of calls or has too many tools."""
        base = self.source.base
        if not isinstance(base, forms.Calls) or len(base.tools) > MOST_TOOLS:
            return ()
        return sorted(base.tools)

    @property
    def text(self) -> str:
        """The author's text."""
        return shown(self.node)


@frozen(kw_only=False)
class Stated:
    """A statement of the core with its rule.

    Attributes:
        origins: the nodes of conditions and sources, by the ids of their forms.
        uses: the outermost sources, in order.
        nulls: the fields of the decided call that the statement compares with null.
    """

    statement: n.Statement
    rule: forms.Rule
    span: Span | None
    origins: Mapping[int, n.Node]
    uses: Sequence[Use]
    nulls: frozenset[str]

    @property
    def tools(self) -> Sequence[str]:
        """The tools that it restricts, sorted; empty if there are too many."""
        tools = self.rule.tools
        return () if tools is None or len(tools) > MOST_TOOLS else sorted(tools)

    @property
    def on(self) -> str:
        """The author's text of the set that it restricts."""
        on = getattr(self.statement, "on", None)
        return "the end" if on is None else shown(on)

    def node(self, form: object) -> n.Node | None:
        """Return the node that a form was made from."""
        return self.origins.get(id(form))


class Policy:
    """The statements of a core, and facts about each tool that follow from them.

    Attributes:
        stated: the statements in source order.
        read: for each restricted tool, the pairs (earlier tool, field) that statements read.
        mentioned: for each restricted tool, its own fields that statements read.
        once: the limits `<= 1` on numbers of calls, without a filter.
        bounded: for each restricted tool, the tools of wanted sources with a window or `since`.
        marking: for each restricted tool, the tools in a `since` of a statement.
        nonempty: pairs (tool, list argument) where a statement asks for an element of the list.
        dotless: pairs (tool, text argument) where a statement has a pattern with `..`.
    """

    def __init__(self, core: Core, places: Mapping[Place, Span]) -> None:
        self.core = core
        self.lets = {let.name: let for let in core.lets}
        self.stated: list[Stated] = []
        self.read: dict[str, set[tuple[str, str]]] = {}
        self.mentioned: dict[str, set[str]] = {}
        self.once: list[forms.Rule] = []
        self.marking: dict[str, set[str]] = {}
        self.bounded: dict[str, set[str]] = {}
        self.nonempty: set[tuple[str, str]] = set()
        self.dotless: set[tuple[str, str]] = set()
        kinds = Kinds(core)
        for number, statement in enumerate(core.statements):
            origins: dict[int, n.Node] = {}
            kinds.origins = origins
            rule = kinds.rule(statement)
            uses = list(_uses(rule, origins))
            nulls = frozenset(_compared_with_null(rule))
            self.stated.append(Stated(statement, rule, places.get(number), origins, uses, nulls))
            self._note(rule)
            bounded = {
                tool
                for use in uses
                if use.wanted and (use.source.marks or use.source.within is not None)
                for tool in use.tools
            }
            for tool in self.stated[-1].tools if bounded else ():
                self.bounded.setdefault(tool, set()).update(bounded)

    def _note(self, rule: forms.Rule) -> None:
        most = rule.most
        if rule.kind == "limit" and rule.field is None and isinstance(most, forms.Constant):
            self.once += [rule] if most.state == ("n", 1) and not rule.where else []
        conditions = [*rule.where, *([] if rule.then is None else [rule.then]), *rule.paying]
        tools = () if rule.tools is None or len(rule.tools) > MOST_TOOLS else rule.tools
        if not tools:
            return
        read = set(fields_read(conditions))
        own = set(own_fields([*conditions, *rule.per]))
        for tool in tools:
            self.read.setdefault(tool, set()).update(read)
            self.mentioned.setdefault(tool, set()).update(own)
        marks = {
            tool
            for condition in conditions
            for one in walk(condition)
            if isinstance(one, Source)
            for mark in one.marks
            if isinstance(mark.base, forms.Calls) and len(mark.base.tools) <= MOST_TOOLS
            for tool in mark.base.tools
        }
        for tool in tools:
            self.marking.setdefault(tool, set()).update(marks)
        names = set(_nonempty(rule.then)) if rule.then is not None else set()
        dotless = {
            one.of.name
            for condition in conditions
            for one in walk(condition)
            if isinstance(one, forms.Matches)
            and isinstance(one.of, forms.Get)
            and ("\\.\\." in one.pattern or "[.][.]" in one.pattern)
        }
        self.nonempty |= {(tool, name) for tool in tools for name in names}
        self.dotless |= {(tool, name) for tool in tools for name in dotless}

    def field(self, tool: str, name: str) -> Field | None:
        """Return a field of a tool; None if it has no field of this name."""
        found = self.core.tool_of[tool]
        return next((one for one in (*found.arguments, *found.answers) if one.name == name), None)

    def has_key(self, stated: Stated, use: Use) -> bool:
        """Return whether a condition ties a source to the decided call or to the session."""
        level = use.source.level
        for condition in use.source.conditions:
            parts = list(walk(condition))
            own = any(isinstance(one, forms.Element) and one.level == level for one in parts)
            outer = any(
                isinstance(one, forms.Attribute)
                or (isinstance(one, forms.Element) and one.level < level)
                for one in parts
            )
            if own and outer:
                return True
        return False

    def shared(self, tools: Iterable[str], others: Iterable[str]) -> list[str]:
        """Return the required key arguments that all tools of two sets have with equal types."""
        first, *rest = [self.core.tool_of[name] for name in (*tools, *others)]
        return [
            field.name
            for field in first.arguments
            if _is_key(field) and all(_has_same(tool, field) for tool in rest)
        ]

    def verdict(self, tool: str) -> tuple[Field, str] | None:
        """Return the yes-or-no answer of a tool, and the text of its yes; None if it has none.

        A tool with several listed answers counts as a lookup. So does a tool that also answers with
        data, unless its listed answer has a name such as `answer` or `result`.
        """
        answers = self.core.tool_of[tool].answers
        closed = [one for one in answers if one.type is None or isinstance(one.type, FlagType)]
        if len(closed) != 1:
            return None
        field = closed[0]
        named = field.name.casefold() in _ANSWERS
        if isinstance(field.type, FlagType):
            return (field, "true") if named else None
        words = {value.strip('"').casefold(): value for value in field.values if value}
        good = next((value for word, value in words.items() if word in _GOOD), None)
        if good is None or _BAD.isdisjoint(words) or not (named or len(answers) == 1):
            return None
        return field, good

    def verdict_of(self, use: Use) -> tuple[str, str] | None:
        """Return the name of the answer and the text of its yes, if all tools of a source agree."""
        found = {self.verdict(tool) for tool in use.tools}
        if len(found) != 1:
            return None
        one = found.pop()
        return None if one is None else (one[0].name, one[1])


def finding(
    code: str,
    stated: Stated,
    message: str,
    hint: str,
    severity: Literal["warning", "note"] = "warning",
) -> LintFinding:
    """Return a finding at a statement."""
    return LintFinding(
        diagnostic=Diagnostic(
            code=code, severity=severity, message=message, span=stated.span, hint=hint
        )
    )


def shown(node: n.Node) -> str:
    """Return the canonical text of a node, cut if it is long."""
    text = n.text_of(node)
    return text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 20]} .."


# Parts of rules.


def _uses(rule: forms.Rule, origins: Mapping[int, n.Node]) -> Iterator[Use]:
    if rule.then is not None:
        yield from _in_condition(rule.then, True, origins)
    for condition in rule.where:
        yield from _in_condition(condition, False, origins)


def _in_condition(
    condition: Condition, wanted: bool, origins: Mapping[int, n.Node]
) -> Iterator[Use]:
    todo: list[tuple[Condition, bool]] = [(condition, wanted)]
    while todo:
        one, wanted = todo.pop()
        match one:
            case forms.Not(of):
                todo.append((of, not wanted))
            case forms.All(parts) | forms.AnyOf(parts):
                todo += [(part, wanted) for part in reversed(parts)]
            case forms.Some(of):
                yield from _use("some", of, wanted, one, origins)
            case forms.Every(of, _):
                yield from _use("every", of, wanted, one, origins)
            case forms.Among(of, source):
                yield from _in_term(of, wanted, one, origins)
                yield from _use("among", source, wanted, one, origins)
            case _:
                for term in terms_of(one):
                    yield from _in_term(term, wanted, one, origins)


_BY_TERM: Mapping[type, str] = {
    forms.Last: "last", forms.Count: "count", forms.Sum: "sum", forms.Extreme: "extreme",
}  # fmt: skip


def _in_term(
    term: Term, wanted: bool, around: Condition, origins: Mapping[int, n.Node]
) -> Iterator[Use]:
    todo: list[Any] = [term]
    while todo:
        one = todo.pop()
        if type(one) in _BY_TERM:
            yield from _use(_BY_TERM[type(one)], one.of, wanted, around, origins)
        elif isinstance(one, forms.Arithmetic):
            todo += [one.right, one.left]
        elif isinstance(one, forms.Choose):
            todo += [one.of, *[then for _, then in one.arms]]
            todo += [] if one.otherwise is None else [one.otherwise]
        elif isinstance(one, forms.Get | forms.CallOf | forms.Clock | forms.Host):
            todo.append(one.of)


def _use(
    kind: str, source: Source, wanted: bool, around: Condition, origins: Mapping[int, n.Node]
) -> Iterator[Use]:
    node = origins.get(id(source))
    if node is not None:
        yield Use(kind, source, node, wanted, around)
    base = source.base
    if isinstance(base, forms.Rows):
        yield from _use("rows", base.of, wanted, around, origins)
    elif isinstance(base, forms.Merged):
        for part in base.parts:
            yield from _use("rows", part, wanted, around, origins)
    elif isinstance(base, forms.Items):
        yield from _in_term(base.of, wanted, around, origins)
    elif isinstance(base, forms.Pairs):
        yield from _in_term(base.left, wanted, around, origins)
        yield from _in_term(base.right, wanted, around, origins)


def is_null(form: Any) -> bool:
    """Return whether a condition is a comparison with null."""
    return isinstance(form, forms.Compare) and any(
        isinstance(one, forms.Constant) and one.state[0] == "z"
        for one in (form.left, *form.options)
    )


def _compared_with_null(rule: forms.Rule) -> Iterator[str]:
    for condition in (*rule.where, *([] if rule.then is None else [rule.then])):
        for one in walk(condition):
            if not is_null(one):
                continue
            for term in (one.left, *one.options):
                if isinstance(term, forms.Get) and term.of == forms.Element(0):
                    yield term.name


def terms_of(condition: Condition) -> tuple[Term, ...]:
    """Return the terms that a condition compares directly."""
    match condition:
        case forms.Compare(_, left, options):
            return (left, *options)
        case forms.Same(left, right):
            return (left, right)
        case forms.Between(of, low, high):
            return (of, low, high)
        case forms.Among(of, _) | forms.Matches(of, _):
            return (of,)
        case forms.Under(of, scope):
            return (of, scope)
    return ()


def fields_of_element(conditions: Iterable[Condition], level: int) -> set[str]:
    """Return the fields of the element of a level that conditions read."""
    element = forms.Element(level)
    return {
        one.name
        for condition in conditions
        for one in walk(condition)
        if isinstance(one, forms.Get) and one.of in (element, forms.CallOf(element))
    }


def own_fields(parts: Iterable[Any]) -> set[str]:
    """Return the fields of the decided call that conditions and terms read."""
    return fields_of_element(parts, 0)


def fields_read(conditions: Iterable[Condition]) -> Iterator[tuple[str, str]]:
    """Yield the pairs (earlier tool, field) that conditions read."""
    for condition in conditions:
        for one in walk(condition):
            if isinstance(one, Source):
                base = one.base.of.base if isinstance(one.base, forms.Rows) else one.base
                names = fields_of_element(one.conditions, one.level)
                if isinstance(one.base, forms.Rows):
                    names |= fields_of_element([one.base.get], one.level)  # type: ignore[list-item]
                yield from _pairs(base, names)
            elif isinstance(one, forms.Get) and isinstance(one.of, forms.Last):
                yield from _pairs(one.of.of.base, {one.name})


def _pairs(base: forms.Base, names: set[str]) -> Iterator[tuple[str, str]]:
    if isinstance(base, forms.Calls) and len(base.tools) <= MOST_TOOLS:
        yield from ((tool, name) for tool in base.tools for name in names)


def _nonempty(condition: Condition) -> Iterator[str]:
    """Yield the lists of the decided call that a condition requires to have an element."""
    parts = condition.parts if isinstance(condition, forms.All) else (condition,)
    for part in parts:
        if isinstance(part, forms.Some) and isinstance(part.of.base, forms.Items):
            of: Any = part.of.base.of
        elif isinstance(part, forms.Compare) and isinstance(part.left, forms.Count):
            of = getattr(part.left.of.base, "of", None) if part.operator in (">=", ">") else None
        else:
            continue
        if isinstance(of, forms.Get) and of.of == forms.Element(0):
            yield of.name


def plain_type(field: Field) -> type | None:
    """Return the class of a field's type, without `or null`; None if the field is listed."""
    kind = field.type
    while isinstance(kind, NullableType):
        kind = kind.of
    return None if kind is None else type(kind)


def _is_key(field: Field) -> bool:
    kinds = (TextType, NumberType, DateType, TimeType, PathType, UrlType)
    return not field.optional and field.name not in _NO_KEYS and plain_type(field) in kinds


def _has_same(tool: Tool, field: Field) -> bool:
    return any(
        other.name == field.name and not other.optional and plain_type(other) is plain_type(field)
        for other in tool.arguments
    )


# Better texts for messages.


def with_condition(node: n.Node, condition: n.Node, lets: Mapping[str, n.Definition]) -> n.Node:
    """Return a set of calls with a further condition in its filter."""
    match node:
        case n.Within(of, amount, unit):
            return n.Within(with_condition(of, condition, lets), amount, unit)
        case n.Since(of, mark):
            return n.Since(with_condition(of, condition, lets), mark)
        case n.Where(of, conditions):
            is_let = isinstance(of, n.Word) and of.name in lets and lets[of.name].parameters
            if not is_let:
                return n.Where(of, (*conditions, condition))
    return n.Where(node, (condition,))


def same_node(names: Sequence[str]) -> n.Node:
    """Return ``same NAME``, or ``same (NAME, ..)``."""
    return n.Same(tuple(names))


def equals(name: str, value: str) -> n.Compare:
    """Return ``NAME = VALUE`` for the canonical text of a listed value."""
    return n.Compare("=", n.Word(name), value_node(value))


def value_node(value: str) -> n.Node:
    """Return the node of the canonical text of a listed value."""
    if value in ("true", "false"):
        return n.Flag(value == "true")
    if value[:1] == '"':
        return n.Text(str(json_of(value)))
    return n.Number(value) if value[:1] in "-0123456789" else n.Word(value)


def without(node: n.Node, field: str) -> tuple[n.Node, n.Compare | None]:
    """Return a set of calls without its comparisons of `field`, and the first of these."""
    match node:
        case n.Within(of, amount, unit):
            rest, first = without(of, field)
            return n.Within(rest, amount, unit), first
        case n.Since(of, mark):
            rest, first = without(of, field)
            return n.Since(rest, mark), first
        case n.Where(of, conditions):
            left = tuple([one for one in conditions if not _compares(one, field)])
            compared = [one for one in conditions if _compares(one, field)]
            found = next((one for one in compared if isinstance(one, n.Compare)), None)
            return (n.Where(of, left) if left else of), found
    return node, None


def _compares(node: n.Node, field: str) -> bool:
    return isinstance(node, n.Compare) and node.left in (
        n.Word(field),
        n.Get(n.It(), field),
    )


def last_text(node: n.Node, field: str) -> str | None:
    """Return ``last(C).f = v`` for ``C(f = v)``; None if the filter has no such comparison."""
    rest, compared = without(node, field)
    if compared is None:
        return None
    last = n.Get(n.Apply("last", (rest,)), field)
    return n.text_of(n.Compare(compared.operator, last, compared.right))
