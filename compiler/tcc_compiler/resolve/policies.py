"""Statements of language 1.2: sets of calls, alternatives, conditions; their monitors in a core.

Normative text: docs/spec/language.md, section 7.  What plans keep of a statement is written out by
:mod:`tcc_compiler.resolve.expansion`.
Cost: linear in the statements and the tools that they name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from tcc_certs.formats.codec import Json, encode, is_decimal, large
from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast import (
    Alternative,
    AnyCall,
    AnySet,
    CallsTerm,
    Constant,
    Expression,
    FieldTerm,
    ForbidStatement,
    KeyPair,
    LetStatement,
    LimitStatement,
    Many,
    Minus,
    MonitorStatement,
    Pair,
    ParameterDeclaration,
    Pattern,
    PolicyStatement,
    Reference,
    RequireStatement,
    SetOf,
    Term,
    Word,
)
from tcc_compiler.language.diagnostics import Report, quote, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import decimal_text
from tcc_compiler.resolve.calls import CallList, ResolvedSelection, Scope
from tcc_compiler.resolve.limits import count_of
from tcc_compiler.resolve.parameters import Kind, OpenField, fields_of, given_of
from tcc_compiler.resolve.program import Program
from tcc_compiler.resolve.relations import (
    CheckedTerm,
    Made,
    NamedField,
    Names,
    ResolvedLookUp,
    field_of,
    is_listed,
    relation_json,
    shared_field,
    term_json,
    window_of,
)
from tcc_compiler.resolve.tools import ResolvedTool, heads_are_there

MAX_COUNT = 1000  # of calls that one statement counts
MAX_KEYS = 8  # of a look-up, as core.md, section 7, has it
MAX_HEIGHT = 50  # of terms and relations


# Sets of calls.


@frozen
class Chosen:
    """A set of calls, resolved.

    Attributes:
        op: ``call`` of one selection, ``any``, ``|`` or ``-``.
        tools: those that its calls can be of.
    """

    op: str
    tools: tuple[str, ...]
    selection: ResolvedSelection | None = None
    items: tuple[Chosen, ...] = ()


def chosen_of(calls: CallsTerm, scope: Scope) -> Chosen | None:
    """The set, None after an error."""
    match calls:
        case AnySet():
            return _any(scope)
        case Pattern():
            return _of_pattern(calls, scope)
        case SetOf():
            items = [chosen_of(item, scope) for item in calls.items]
            return _joined(calls.op, items)


def _any(scope: Scope) -> Chosen:
    return Chosen(op="any", tools=tuple(scope.tools))


def _joined(op: str, items: Sequence[Chosen | None]) -> Chosen | None:
    sound = tuple(item for item in items if item is not None)
    if len(sound) < len(items):
        return None
    named = sound[:1] if op == "-" else sound
    tools = tuple(dict.fromkeys(tool for item in named for tool in item.tools))
    return Chosen(op=op, tools=tools, items=sound)


def _of_pattern(pattern: Pattern, scope: Scope) -> Chosen | None:
    name = pattern.name.text
    rule = scope.program.rules.get(name)
    if rule is not None and name not in scope.tools and not pattern.arguments:
        found = _of_rule(rule.body, scope, (name,))
        if found is None:
            scope.report.error(
                "TCC203", pattern.name.region,
                f"{quote(name)} is a rule, and its plans are not all single calls",
                "a set of calls is a tool, `a | b`, `a - b`, `any`, or a rule of these",
                [("the rule", rule.name.region)],
            )  # fmt: skip
        return found
    selection = scope.selection(pattern)
    if selection is None:
        return None
    return Chosen(op="call", tools=(selection.tool,), selection=selection)


def _of_rule(body: Expression, scope: Scope, within: tuple[str, ...]) -> Chosen | None:
    """The set that a rule of single calls is; None where it is none."""
    scope.report.tick()
    match body:
        case AnyCall():
            return _any(scope)
        case Reference():
            name = body.pattern.name.text
            rule = scope.program.rules.get(name)
            if rule is None or name in scope.tools or body.pattern.arguments:
                if name not in scope.tools:
                    return None
                selection = scope.selection(body.pattern)
                if selection is None:
                    return None
                return Chosen(op="call", tools=(selection.tool,), selection=selection)
            if name in within or len(within) > MAX_HEIGHT:
                return None
            return _of_rule(rule.body, scope, (*within, name))
        case Many(kind="alt"):
            return _joined("|", [_of_rule(item, scope, within) for item in body.items])
        case Minus():
            parts = (body.base, *body.others)
            return _joined("-", [_of_rule(item, scope, within) for item in parts])
        case _:
            return None


def members(chosen: Chosen, call_list: CallList) -> frozenset[int]:
    """The numbers of the calls of a set.

    Raises:
        TooManyMembers: see :meth:`CallList.calls_of`.
    """
    if chosen.op == "any":
        return frozenset(range(len(call_list.calls)))
    if chosen.selection is not None:
        ranges = call_list.calls_of(chosen.selection)
        return frozenset(number for low, high in ranges for number in range(low, high))
    first, *others = (members(item, call_list) for item in chosen.items)
    return first.union(*others) if chosen.op == "|" else first.difference(*others)


# Statements of 1.1 whose words say more since 1.2.


def policy_form(
    statement: RequireStatement | ForbidStatement | LimitStatement, scope: Scope
) -> PolicyStatement | None:
    """The statement as one of 1.2, where it names a rule, or a listed key that may be left out."""
    patterns: tuple[Pattern, ...]
    pairs: tuple[Pair, ...] = ()
    match statement:
        case RequireStatement():
            patterns, pairs = (statement.first, statement.second), statement.same
        case ForbidStatement():
            patterns, pairs = statement.patterns, statement.same
        case LimitStatement(pattern=Pattern() as pattern):
            patterns = (pattern,)
        case LimitStatement(total=(tool, parameter)):
            of = Pattern(tool, (), tool.region)
            new = _may_be_absent(of, parameter, scope) and not _is_listed(of, parameter, scope)
            return _as_policy(statement) if new else None
        case _:
            return None
    names = [(patterns[0], pair.first) for pair in pairs]
    names += [(patterns[-1], pair.second) for pair in pairs]
    if isinstance(statement, LimitStatement) and statement.per is not None:
        names.append((patterns[0], statement.per))
    named = any(_names_rule(pattern, scope) for pattern in patterns)
    mixed = any(_mixes(patterns[0], patterns[-1], pair, scope) for pair in pairs)
    new = named or mixed or any(_is_of_policies(*one, scope) for one in names)
    return _as_policy(statement) if new else None


def _mixes(first: Pattern, second: Pattern, pair: Pair, scope: Scope) -> bool:
    """Whether a listed field is compared with an open one of its kind."""
    tools = scope.tools.get(first.name.text), scope.tools.get(second.name.text)
    one = None if tools[0] is None else field_of(tools[0], pair.first.text)
    other = None if tools[1] is None else field_of(tools[1], pair.second.text)
    if one is None or other is None or one.listed is other.listed:
        return False
    return one.kind == other.kind


def _is_of_policies(pattern: Pattern, name: Word, scope: Scope) -> bool:
    """Whether no statement of 1.1 compares a field: it may be left out, or is JSON."""
    tool = scope.tools.get(pattern.name.text)
    found = None if tool is None else field_of(tool, name.text)
    return _may_be_absent(pattern, name, scope) or (found is not None and found.kind == "json")


def _is_listed(pattern: Pattern, name: Word, scope: Scope) -> bool:
    tool = scope.tools.get(pattern.name.text)
    found = None if tool is None else field_of(tool, name.text)
    return found is not None and found.listed


def _as_policy(
    statement: RequireStatement | ForbidStatement | LimitStatement,
) -> PolicyStatement | None:
    """The statement in the form of 1.2; None for a limit on amounts of plans."""
    patterns: tuple[Pattern, ...] = ()
    pairs: tuple[Pair, ...] = ()
    per: tuple[Term, ...] = ()
    total = None
    match statement:
        case RequireStatement():
            kind, order, patterns = "require", statement.order, (statement.first, statement.second)
            pairs = statement.same
        case ForbidStatement():
            kind, order, patterns = "forbid", statement.order, statement.patterns
            pairs = statement.same
        case LimitStatement():
            kind, order, total = statement.kind, statement.op, statement.total
            patterns = () if statement.pattern is None else (statement.pattern,)
            per = () if statement.per is None else (_field_term(statement.per),)
            if not patterns and total is None:
                return None
    parts = [
        Alternative(
            calls=one, last=False, count=None, keys=(), where=(), within=None, region=one.region
        )
        for one in patterns
    ]
    alone = kind in ("uses", "sum") or order == "next"
    return PolicyStatement(
        kind=kind,
        order=order,
        before=tuple(parts if alone else parts[:1]),
        calls=None if alone else patterns[1],
        region=statement.region,
        word=Word(kind, statement.region),
        keys=tuple(KeyPair(pair.first, _field_term(pair.second)) for pair in pairs),
        total=total,
        per=per,
        number=statement.number if isinstance(statement, LimitStatement) else None,
    )


def _field_term(name: Word) -> Term:
    return FieldTerm("own", (name,), name.region)


def _names_rule(pattern: Pattern, scope: Scope) -> bool:
    name = pattern.name.text
    return name in scope.program.rules and name not in scope.tools and not pattern.arguments


def _may_be_absent(pattern: Pattern, name: Word, scope: Scope) -> bool:
    """Whether a key may be left out, or is of a type or an answer that 1.1 does not know."""
    tool = scope.tools.get(pattern.name.text)
    found = None if tool is None else field_of(tool, name.text)
    if tool is None or found is None:
        return False
    return found.optional or (not found.listed and name.text not in tool.opened)


def monitored(statement: MonitorStatement, scope: Scope) -> PolicyStatement | None:
    """``monitor`` before a statement of 1.1 as one of 1.2; None, reported, where it can be none."""
    inner = statement.statement
    found = _as_policy(inner)
    if found is None:
        message = "`monitor` stands before a `require`, a `forbid`, or a limit on calls or a sum"
        scope.report.error("TCC227", statement.region, message, "take the `monitor` away")
        return None
    return replace(found, monitored=statement.region, region=statement.region)


# Statements, checked.


@frozen
class PolicyPart:
    """An alternative, checked.

    Attributes:
        calls: None where it speaks of the call itself.
        keys: of each pair the field of the earlier call and the term.
        region: of the alternative.
    """

    calls: Chosen | None
    last: bool
    least: int
    keys: tuple[tuple[str, Made], ...]
    where: tuple[Made, ...]
    region: Region
    within: int | None = None

    @property
    def relations(self) -> tuple[Made, ...]:
        """The keys as relations."""
        return tuple(("=", ("seen", name), term) for name, term in self.keys)


@frozen
class ResolvedPolicy:
    """A statement over listed fields alone.

    Attributes:
        kind, order: as of :class:`PolicyStatement`.
        own: B; of a chain and of a limit what is counted is in `parts`.
        most: of a limit.
        per: of a limit, fields of the calls that are counted.
        held: by whoever makes the calls, and not by the automaton.
        total: of a sum the tool, the field and the most, a decimal.
        within: of a limit, in milliseconds; across: whether other sessions count, too.
    """

    kind: str
    order: str
    parts: tuple[PolicyPart, ...]
    own: Chosen | None
    region: Region
    unless: tuple[PolicyPart, ...] = ()
    most: int = 0
    per: tuple[Made, ...] = ()
    held: bool = False
    total: tuple[str, str, str] | None = None
    within: int | None = None
    across: bool = False


def policy_of(
    statement: PolicyStatement, scope: Scope, session: Attributes
) -> ResolvedPolicy | None:
    """The statement, None after an error."""
    return _Checker(statement, scope, session).run()


class _Checker:
    """One statement; `held` once something is met that no plan has."""

    def __init__(self, statement: PolicyStatement, scope: Scope, session: Attributes) -> None:
        self.statement = statement
        self.scope = scope
        self.session = session
        self.report: Report = scope.report
        self.held = False

    def run(self) -> ResolvedPolicy | None:
        self.report.tick()
        statement = self.statement
        if statement.monitored is not None:
            self.held = True
        if statement.within is not None:
            self.held = True
        made = self._limit() if statement.kind in ("uses", "sum") else self._order()
        if made is None:
            return None
        if self.held and made.kind == "uses" and made.order == ">=":
            message = "`>=` is of what a whole plan has: of listed fields, without a window"
            hint = "say what has to come before or after: require A before B"
            self.report.error("TCC227", statement.region, message, hint)
            return None
        if self.held and made.order == "next":
            message = "neighbours are held by the automaton alone"
            hint = "take the `monitor` away"
            self.report.error("TCC227", statement.region, message, hint)
            return None
        return replace(made, held=self.held)

    def _tools(self, chosen: Chosen) -> list[ResolvedTool] | None:
        tools = [self.scope.tools[name] for name in chosen.tools]
        sound = [tool for tool in tools if tool is not None]
        return sound if len(sound) == len(tools) else None

    def _names(
        self, own: Sequence[ResolvedTool], seen: Sequence[ResolvedTool] | None, answers: bool
    ) -> Names:
        return Names(
            own=own,
            seen=seen,
            session=self.session.kinds,
            report=self.report,
            answers=answers,
            looks=self.session.looks,
        )

    # Orders.

    def _order(self) -> ResolvedPolicy | None:
        statement = self.statement
        own = None if statement.calls is None else chosen_of(statement.calls, self.scope)
        if statement.order == "next":
            parts = [self._bare(one) for one in statement.before]
            sound = tuple(part for part in parts if part is not None)
            return self._policy(sound, None) if len(sound) == len(parts) else None
        if own is None or not self._keys_fit():
            return None
        tools = self._tools(own)
        if tools is None:
            return None
        # With `after` and `with`, B has answered when the two are compared.
        answered = statement.order in ("after", "with")
        behind = statement.keys
        parts = [self._part(one, tools, behind, answered) for one in statement.before]
        lifting = [self._part(one, tools, (), False) for one in statement.unless]
        sound = tuple(part for part in parts if part is not None)
        lifts = tuple(part for part in lifting if part is not None)
        if len(sound) < len(parts) or len(lifts) < len(lifting):
            return None
        alone = [part for part in (*sound, *lifts) if part.calls is None]
        if alone:
            self.held = True
        return self._policy(sound, own, lifts)

    def _keys_fit(self) -> bool:
        """Whether `same` behind B belongs to the one alternative, which has none; else reported."""
        keys, before = self.statement.keys, self.statement.before
        if not keys or (len(before) == 1 and before[0].calls and not before[0].keys):
            return True
        message = "`same` behind the second set belongs to the one set before it"
        hint = "write it behind the set that it belongs to: a same k or b same l before c"
        self.report.error("TCC227", keys[0].first.region, message, hint)
        return False

    def _policy(
        self, parts: tuple[PolicyPart, ...], own: Chosen | None, unless: tuple[PolicyPart, ...] = ()
    ) -> ResolvedPolicy:
        return ResolvedPolicy(
            kind=self.statement.kind,
            order=self.statement.order,
            parts=parts,
            own=own,
            region=self.statement.region,
            unless=unless,
        )

    def _bare(self, one: Alternative) -> PolicyPart | None:
        chosen = None if one.calls is None else chosen_of(one.calls, self.scope)
        if chosen is None:
            return None
        return PolicyPart(calls=chosen, last=False, least=1, keys=(), where=(), region=one.region)

    def _part(
        self,
        one: Alternative,
        own: Sequence[ResolvedTool],
        behind: Sequence[KeyPair],
        answered: bool,
    ) -> PolicyPart | None:
        calls = None if one.calls is None else chosen_of(one.calls, self.scope)
        tools = None if calls is None else self._tools(calls)
        if one.calls is not None and tools is None:
            return None
        if one.within is not None:
            self.held = True
        names = self._names(own, tools, answered)
        keys = self._keys(one.keys, names, False) if not behind else self._keys(behind, names, True)
        where = self._where(one, names)
        least = self._least(one)
        if keys is None or where is None or least is None:
            return None
        part = PolicyPart(
            calls=calls,
            last=one.last,
            least=least,
            keys=keys,
            where=where,
            region=one.region,
            within=window_of(one.within, self.report),
        )
        for relation in (*part.relations, *where):
            if not is_listed(relation, own, tools or ()):
                self.held = True
        return part

    def _least(self, one: Alternative) -> int | None:
        if one.count is None:
            return 1
        least = count_of(one.count, self.report)
        if least is not None and not 1 <= least <= MAX_COUNT:
            message = f"an alternative asks for 1 to {MAX_COUNT} calls"
            self.report.error("TCC227", one.count.region, message, "write a number such as 2")
            return None
        return least

    def _where(self, one: Alternative, names: Names) -> tuple[Made, ...] | None:
        for relation in one.where:
            if relation.height > MAX_HEIGHT:
                message = f"terms and relations are nested deeper than {MAX_HEIGHT}"
                self.report.error("TCC106", relation.region, message, "write it in several")
                return None
        return names.relations(one.where)

    def _keys(
        self, pairs: Sequence[KeyPair], names: Names, behind: bool
    ) -> tuple[tuple[str, Made], ...] | None:
        """The pairs of `same`; behind B a text in quotes is a name there."""
        keys: dict[tuple[str, Made], None] = {}
        sound = True
        for pair in pairs:
            first = shared_field(names.seen or (), pair.first, self.report)
            term = _key_term(pair, behind)
            found = None if term is None else names.term(term)
            if first is None or found is None:
                sound = False
                continue
            if not _alike(first.kind, found):
                message = f"{quote(pair.first.text)} and this are of kinds that are never the same"
                self.report.error("TCC219", found.region, message, "compare values of one kind")
                sound = False
            key = (pair.first.text, found.made)
            if key in keys:
                message = "this pair is given twice"
                self.report.error("TCC211", found.region, message, "take one of them away")
                sound = False
            keys[key] = None
        return tuple(keys) if sound else None

    # Limits.

    def _limit(self) -> ResolvedPolicy | None:
        statement = self.statement
        if statement.total is not None:
            return self._sum(*statement.total)
        (counted,) = statement.before
        chosen = None if counted.calls is None else chosen_of(counted.calls, self.scope)
        tools = None if chosen is None else self._tools(chosen)
        most = None if statement.number is None else count_of(statement.number, self.report)
        if chosen is None or tools is None or most is None:
            return None
        names = self._names(tools, None, False)
        where = self._where(counted, names)
        per = self._per(names)
        if where is None or per is None:
            return None
        if statement.across is not None:
            self.held = True  # no automaton knows of other sessions
        elif not all(is_listed(one, tools, ()) for one in (*where, *per)):
            self.held = True
        elif most > MAX_COUNT and not self.held:
            message = f"a limit on a set of calls counts to {MAX_COUNT}"
            hint = (
                "write a smaller number, or a limit for each tool; `monitor` leaves it to the gate"
            )
            self.report.error("TCC227", statement.region, message, hint)
            return None
        part = PolicyPart(
            calls=chosen, last=False, least=1, keys=(), where=where, region=counted.region
        )
        return ResolvedPolicy(
            kind="uses", order=statement.order, parts=(part,), own=None, region=statement.region,
            most=most, per=per, within=window_of(statement.within, self.report),
            across=statement.across is not None,
        )  # fmt: skip

    def _per(self, names: Names) -> tuple[Made, ...] | None:
        found = [names.term(_named(term)) for term in self.statement.per]
        made = tuple(one.made for one in found if one is not None)
        if len(made) < len(found):
            return None
        if self.statement.across is None or all(map(self._is_said, made)):
            return made
        # An account counts before the call is made, and the values that it counts for.
        message = "for whom a limit counts across sessions is said by no argument"
        hint = "name an argument, or what the session is given, behind `per`"
        self.report.error("TCC227", self.statement.region, message, hint)
        return None

    def _is_said(self, made: Made) -> bool:
        match made:
            case ("own", str()):
                return True
            case ("session", str() as name):
                return name not in [let.name.text for let in self.session.lets]
        return made[0] in ("text", "number", "word")

    def _sum(self, name: Word, parameter: Word) -> ResolvedPolicy | None:
        pattern = Pattern(name, (), name.region)
        selection = self.scope.selection(pattern)
        tool = None if selection is None else self.scope.tools[selection.tool]
        field = None if tool is None else shared_field([tool], parameter, self.report)
        per = None if tool is None else self._per(self._names([tool], None, False))
        number = self.statement.number
        if tool is None or field is None or per is None or number is None:
            return None
        if not _adds_up(tool, field):
            message = (
                f"{quote(parameter.text)} is no number from 0 up, so its sum may go down again"
            )
            hint = "declare it `number 0 .. HIGH` or `integer 0 .. HIGH`"
            self.report.error("TCC321", parameter.region, message, hint)
            return None
        most = decimal_text(number.value)
        if number.value < 0 or not is_decimal(most):
            self.report.error("TCC308", number.region, "this sum is no amount", "write 0 or more")
            return None
        self.held = True
        return ResolvedPolicy(
            kind="sum",
            order="<=",
            parts=(),
            own=None,
            region=self.statement.region,
            per=per,
            total=(tool.name, field.name, most),
            within=window_of(self.statement.within, self.report),
            across=self.statement.across is not None,
        )


def _adds_up(tool: ResolvedTool, field: NamedField) -> bool:
    """Whether the values of a field are amounts from 0 up."""
    if field.answer or field.kind != "number":
        return False
    if field.listed:
        numbers = tool.parameters[tool.places[field.name]].numbers
        return all(number is None or number >= 0 for number in numbers)
    members = [one.members for one in tool.arguments if one.name == field.name]
    opened = tool.opened.get(field.name)
    low = members[0].get("low") if members else getattr(opened and opened.type, "low", None)
    return isinstance(low, str) and not low.startswith("-")


# Attributes of the session.


@frozen
class Attributes:
    """What is given and let: kinds of ``session.x``, look-ups, and members of the core."""

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    looks: Mapping[str, ResolvedLookUp] = field(default_factory=dict)
    given: Sequence[OpenField] = ()
    lets: Sequence[LetStatement] = ()
    calls: Mapping[str, Chosen] = field(default_factory=dict)


def attributes_of(program: Program, scope: Scope) -> Attributes:
    """The attributes; those with an error are reported and left out."""
    report = scope.report
    kinds: dict[str, Kind] = {}
    looks: dict[str, ResolvedLookUp] = {}
    calls: dict[str, Chosen] = {}
    names: dict[str, Region] = {}
    given: list[OpenField] = []
    for statement in program.givens:
        for declared in statement.attributes:
            found: Sequence[OpenField] | None
            if isinstance(declared, ParameterDeclaration):
                one = given_of(declared, report)
                found = None if one is None else [one]
            else:
                found = fields_of([declared], names, report)
            if found is None:
                continue
            if declared.name.text in names and isinstance(declared, ParameterDeclaration):
                _report_twice(declared.name, names, report)
                continue
            names[declared.name.text] = declared.name.region
            kinds[declared.name.text] = found[0].kind
            given += found
    declared_all = [one for statement in program.givens for one in statement.attributes]
    heads_are_there(declared_all, "attribute", report)
    for let in program.lets:
        if let.name.text in names:
            _report_twice(let.name, names, report)
            continue
        names[let.name.text] = let.name.region
        if not let.keys:
            kind = _let_kind(let, scope)
            if kind is not None:
                kinds[let.name.text] = kind
            continue
        chosen = None if let.calls is None else chosen_of(let.calls, scope)
        look = _rows(let, scope) if let.calls is None else _calls(let, chosen, scope)
        if look is not None:
            looks[let.name.text] = look
            calls |= {} if chosen is None else {let.name.text: chosen}
    return Attributes(kinds=kinds, looks=looks, given=given, lets=program.lets, calls=calls)


def _report_twice(name: Word, names: Mapping[str, Region], report: Report) -> None:
    message = f"the attribute {quote(name.text)} is declared twice"
    notes = [("first declared here", names[name.text])]
    report.error("TCC201", name.region, message, "take one of them away", notes)


def _tool_named(name: Word, scope: Scope) -> ResolvedTool | None:
    selection = scope.selection(Pattern(name, (), name.region))
    return None if selection is None else scope.tools[selection.tool]


def _let_kind(let: LetStatement, scope: Scope) -> Kind | None:
    """The one kind of what an attribute may be taken from; None after an error."""
    kinds: list[Kind] = []
    for name, parameter in let.sources:
        tool = _tool_named(name, scope)
        field = None if tool is None else shared_field([tool], parameter, scope.report)
        if field is None:
            return None
        kinds.append(field.kind)
    if any(kind != kinds[0] for kind in kinds):
        message = f"what {quote(let.name.text)} may be taken from is of different kinds"
        hint = "name fields of one kind, or an attribute for each"
        scope.report.error("TCC225", let.region, message, hint)
        return None
    return kinds[0]


def _calls(let: LetStatement, chosen: Chosen | None, scope: Scope) -> ResolvedLookUp | None:
    tools = [] if chosen is None else [scope.tools[name] for name in chosen.tools]
    sound = [tool for tool in tools if tool is not None]
    if not sound or len(sound) < len(tools):
        return None
    keys = [shared_field(sound, key, scope.report) for key in let.keys]
    good = [key for key in keys if key is not None]
    if len(good) < len(keys) or not _keys_fit(let, good, scope.report):
        return None
    return ResolvedLookUp(keys=[(key.name, key.kind) for key in good], fields=_shared(sound))


def _keys_fit(let: LetStatement, keys: Sequence[NamedField], report: Report) -> bool:
    """The keys of a look-up are a few, each once, and chosen by who makes a call."""
    sound = True
    for at, (word, key) in enumerate(zip(let.keys, keys, strict=True)):
        if key.answer:
            message = f"{quote(word.text)} is an answer, and a look-up is by arguments"
            hint = "name an argument, or look in rows: let x(k) = tool.rows"
            report.error("TCC220", word.region, message, hint)
            sound = False
        if any(word.text == other.text for other in let.keys[:at]):
            message = f"the key {quote(word.text)} is named twice"
            report.error("TCC211", word.region, message, "take one of them away")
            sound = False
    if len(keys) > MAX_KEYS:
        message = f"a look-up has at most {MAX_KEYS} keys"
        report.error("TCC227", let.region, message, "name fewer")
        sound = False
    return sound


def _shared(tools: Sequence[ResolvedTool]) -> dict[str, Kind]:
    """The fields that all of some tools have, of one kind."""
    first = tools[0]
    names = [*first.places, *first.opened]
    names += [one.name for one in (*first.arguments, *first.answers)]
    shared: dict[str, Kind] = {}
    for name in names:
        found = [field_of(tool, name) for tool in tools]
        kinds = [one.kind for one in found if one is not None]
        if len(kinds) == len(found) and all(kind == kinds[0] for kind in kinds):
            shared[name] = kinds[0]
    return shared


def _rows(let: LetStatement, scope: Scope) -> ResolvedLookUp | None:
    fields: list[dict[str, Kind]] = []
    keys: list[tuple[str, Kind]] = []
    for name, parameter in let.sources:
        tool = _tool_named(name, scope)
        field = None if tool is None else shared_field([tool], parameter, scope.report)
        if tool is None or field is None:
            return None
        kind = field.kind
        inner = kind[1] if isinstance(kind, tuple) and kind[0] == "list" else None
        if not isinstance(inner, tuple) or inner[0] != "record":
            message = f"{quote(parameter.text)} is no list of records"
            hint = "declare it `list of (number: text, ..)`"
            scope.report.error("TCC225", parameter.region, message, hint)
            return None
        cells = dict(inner[1])
        for key in let.keys:
            if key.text not in cells:
                message = f"{quote(key.text)} is no field of these records"
                hint = suggest(key.text, list(cells)) or f"they have {', '.join(cells)}"
                scope.report.error("TCC204", key.region, message, hint)
                return None
        found = [
            NamedField(name=k.text, kind=cells[k.text], listed=False, answer=False, optional=False)
            for k in let.keys
        ]
        if not _keys_fit(let, found, scope.report):
            return None
        keys = [(key.name, key.kind) for key in found]
        fields.append(_shared([tool]) | cells)
    shared = {
        name: kind
        for name, kind in fields[0].items()
        if all(other.get(name) == kind for other in fields[1:])
    }
    return ResolvedLookUp(keys=keys, fields=shared)


def _named(term: Term) -> Term:
    """A text in quotes where a field is due is its name."""
    if isinstance(term, Constant) and term.number is None:
        return FieldTerm("", (Word(term.text, term.region, True),), term.region)
    return term


def _key_term(pair: KeyPair, behind: bool) -> Term | None:
    if pair.second is None:
        return FieldTerm("own", (pair.first,), pair.first.region)
    return _named(pair.second) if behind else pair.second


def _alike(kind: object, found: CheckedTerm) -> bool:
    return kind == found.kind or not {"mixed", "null"}.isdisjoint((str(kind), str(found.kind)))


# The JSON of statements that are held call by call (docs/spec/core.md, section 7).


def set_json(chosen: Chosen, numbers: Mapping[str, int], tools: Mapping[str, ResolvedTool]) -> Json:
    """A set of calls."""
    if chosen.op == "any":
        return ["any"]
    if chosen.selection is not None:
        tool = tools[chosen.selection.tool]
        bound = sorted(
            (tool.parameters[place].name, [tool.parameters[place].values[one] for one in values])
            for place, values in chosen.selection.where
        )
        where: Json = [[name, sorted(values)] for name, values in bound]
        return ["calls", numbers[tool.name], where]
    items = [set_json(item, numbers, tools) for item in chosen.items]
    if chosen.op == "|":
        return ["or", items]
    made = items[0]
    for item in items[1:]:
        made = ["but", made, item]
    return made


def _part_json(
    part: PolicyPart, numbers: Mapping[str, int], tools: Mapping[str, ResolvedTool]
) -> Json:
    members: dict[str, Json] = {}
    if part.calls is not None:
        members["calls"] = set_json(part.calls, numbers, tools)
    members |= {"last": True} if part.last else {}
    members |= {"n": part.least} if part.least > 1 else {}
    members |= {"same": _keys_json(part)} if part.keys else {}
    members |= {"where": [relation_json(one) for one in part.where]} if part.where else {}
    members |= {} if part.within is None else {"within": part.within}
    return members


def _keys_json(part: PolicyPart) -> Json:
    keys: list[Json] = [[name, term_json(made)] for name, made in part.keys]
    return sorted(keys, key=encode)


def policy_json(
    policy: ResolvedPolicy, numbers: Mapping[str, int], tools: Mapping[str, ResolvedTool]
) -> Json:
    """The monitor object of a statement."""

    def calls(chosen: Chosen | None) -> Json:
        return ["any"] if chosen is None else set_json(chosen, numbers, tools)

    def parts(some: Sequence[PolicyPart]) -> Json:
        return [_part_json(one, numbers, tools) for one in some]

    first = policy.parts[0] if policy.parts else None
    members: dict[str, Json]
    if policy.total is not None:
        tool, name, most = policy.total
        members = {"kind": "total", "tool": numbers[tool], "param": name, "value": most}
    elif first is None:
        raise ValueError("a statement of nothing")
    elif policy.kind == "uses":
        members = {"kind": "count", "of": calls(first.calls), "value": large(policy.most)}
        members |= {"where": [relation_json(one) for one in first.where]} if first.where else {}
    elif policy.order == "after":
        members = {"kind": "owe", "first": calls(first.calls), "of": calls(policy.own)}
        members |= {"same": _keys_json(first)} if first.keys else {}
    elif policy.order == "with":
        members = {"kind": "apart", "one": calls(first.calls), "other": calls(policy.own)}
        members |= {"same": _keys_json(first)} if first.keys else {}
    elif policy.kind == "forbid":
        members = {"kind": "ban", "any": parts(policy.parts), "of": calls(policy.own)}
        members |= {"unless": parts(policy.unless)} if policy.unless else {}
    else:
        order = "each" if policy.order == "each" else "before"
        members = {
            "kind": "need",
            "order": order,
            "any": parts(policy.parts),
            "of": calls(policy.own),
        }
    members |= {"per": [term_json(made) for made in policy.per]} if policy.per else {}
    members |= {} if policy.within is None else {"within": policy.within}
    members |= {"across": True} if policy.across else {}
    return members


def lets_json(
    session: Attributes, numbers: Mapping[str, int], tools: Mapping[str, ResolvedTool]
) -> list[Json]:
    """The member ``lets`` of the core."""
    made: list[Json] = []
    for let in sorted(session.lets, key=lambda one: one.name.text.encode()):
        sources: Json = [[numbers[tool.text], name.text] for tool, name in let.sources]
        keys: Json = [key.text for key in let.keys]
        if not let.keys:
            made.append({"name": let.name.text, "of": sources})
        elif let.calls is None:
            made.append({"name": let.name.text, "keys": keys, "rows": sources})
        else:
            calls = set_json(session.calls[let.name.text], numbers, tools)
            made.append({"name": let.name.text, "keys": keys, "calls": calls})
    return made
