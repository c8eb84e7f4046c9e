"""Statements of language 1.2: alternatives, conditions, limits, attributes of a session; checked.

Normative text: docs/spec/language.md, section 7.  What plans keep of a statement is written out by
:mod:`tcc_compiler.resolve.expansion`, their JSON by :mod:`tcc_compiler.resolve.core`.
Cost: linear in the statements and the tools that they name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from tcc_certs.values.numbers import is_decimal
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Report, quote, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import decimal_text
from tcc_compiler.resolve import relations
from tcc_compiler.resolve.amounts import count_of
from tcc_compiler.resolve.calls import MAX_HEIGHT, Chosen, Scope, chosen_of
from tcc_compiler.resolve.decided import is_listed
from tcc_compiler.resolve.fields import Kind, OpenField, fields_of, given_of
from tcc_compiler.resolve.program import Program
from tcc_compiler.resolve.tools import ResolvedTool, heads_are_there

MAX_COUNT = 1000  # of calls that one statement counts
MAX_KEYS = 8  # of a look-up, as core.md, section 7, has it


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
    keys: tuple[tuple[str, relations.Made], ...]
    where: tuple[relations.Made, ...]
    region: Region
    within: int | None = None

    @property
    def relations(self) -> tuple[relations.Made, ...]:
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
    per: tuple[relations.Made, ...] = ()
    held: bool = False
    total: tuple[str, str, str] | None = None
    within: int | None = None
    across: bool = False


def policy_of(
    statement: ast.PolicyStatement, scope: Scope, session: Attributes
) -> ResolvedPolicy | None:
    """The statement, None after an error."""
    return _Checker(statement, scope, session).run()


class _Checker:
    """One statement; `held` once something is met that no plan has."""

    def __init__(self, statement: ast.PolicyStatement, scope: Scope, session: Attributes) -> None:
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
    ) -> relations.Names:
        return relations.Names(
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

    def _bare(self, one: ast.Alternative) -> PolicyPart | None:
        chosen = None if one.calls is None else chosen_of(one.calls, self.scope)
        if chosen is None:
            return None
        return PolicyPart(calls=chosen, last=False, least=1, keys=(), where=(), region=one.region)

    def _part(
        self,
        one: ast.Alternative,
        own: Sequence[ResolvedTool],
        behind: Sequence[ast.KeyPair],
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
            within=relations.window_of(one.within, self.report),
        )
        for relation in (*part.relations, *where):
            if not is_listed(relation, own, tools or ()):
                self.held = True
        return part

    def _least(self, one: ast.Alternative) -> int | None:
        if one.count is None:
            return 1
        least = count_of(one.count, self.report)
        if least is not None and not 1 <= least <= MAX_COUNT:
            message = f"an alternative asks for 1 to {MAX_COUNT} calls"
            self.report.error("TCC227", one.count.region, message, "write a number such as 2")
            return None
        return least

    def _where(
        self, one: ast.Alternative, names: relations.Names
    ) -> tuple[relations.Made, ...] | None:
        for relation in one.where:
            if relation.height > MAX_HEIGHT:
                message = f"terms and relations are nested deeper than {MAX_HEIGHT}"
                self.report.error("TCC106", relation.region, message, "write it in several")
                return None
        return names.relations(one.where)

    def _keys(
        self, pairs: Sequence[ast.KeyPair], names: relations.Names, behind: bool
    ) -> tuple[tuple[str, relations.Made], ...] | None:
        """The pairs of `same`; behind B a text in quotes is a name there."""
        keys: dict[tuple[str, relations.Made], None] = {}
        sound = True
        for pair in pairs:
            first = relations.shared_field(names.seen or (), pair.first, self.report)
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
            most=most, per=per, within=relations.window_of(statement.within, self.report),
            across=statement.across is not None,
        )  # fmt: skip

    def _per(self, names: relations.Names) -> tuple[relations.Made, ...] | None:
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

    def _is_said(self, made: relations.Made) -> bool:
        match made:
            case ("own", str()):
                return True
            case ("session", str() as name):
                return name not in [let.name.text for let in self.session.lets]
        return made[0] in ("text", "number", "word")

    def _sum(self, name: ast.Word, parameter: ast.Word) -> ResolvedPolicy | None:
        pattern = ast.Pattern(name, (), name.region)
        selection = self.scope.selection(pattern)
        tool = None if selection is None else self.scope.tools[selection.tool]
        field = None if tool is None else relations.shared_field([tool], parameter, self.report)
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
            within=relations.window_of(self.statement.within, self.report),
            across=self.statement.across is not None,
        )


def _adds_up(tool: ResolvedTool, field: relations.NamedField) -> bool:
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
    looks: Mapping[str, relations.ResolvedLookUp] = field(default_factory=dict)
    given: Sequence[OpenField] = ()
    lets: Sequence[ast.LetStatement] = ()
    calls: Mapping[str, Chosen] = field(default_factory=dict)


def attributes_of(program: Program, scope: Scope) -> Attributes:
    """The attributes; those with an error are reported and left out."""
    report = scope.report
    kinds: dict[str, Kind] = {}
    looks: dict[str, relations.ResolvedLookUp] = {}
    calls: dict[str, Chosen] = {}
    names: dict[str, Region] = {}
    given: list[OpenField] = []
    for statement in program.givens:
        for declared in statement.attributes:
            found: Sequence[OpenField] | None
            if isinstance(declared, ast.ParameterDeclaration):
                one = given_of(declared, report)
                found = None if one is None else [one]
            else:
                found = fields_of([declared], names, report)
            if found is None:
                continue
            if declared.name.text in names and isinstance(declared, ast.ParameterDeclaration):
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


def _report_twice(name: ast.Word, names: Mapping[str, Region], report: Report) -> None:
    message = f"the attribute {quote(name.text)} is declared twice"
    notes = [("first declared here", names[name.text])]
    report.error("TCC201", name.region, message, "take one of them away", notes)


def _tool_named(name: ast.Word, scope: Scope) -> ResolvedTool | None:
    selection = scope.selection(ast.Pattern(name, (), name.region))
    return None if selection is None else scope.tools[selection.tool]


def _let_kind(let: ast.LetStatement, scope: Scope) -> Kind | None:
    """The one kind of what an attribute may be taken from; None after an error."""
    kinds: list[Kind] = []
    for name, parameter in let.sources:
        tool = _tool_named(name, scope)
        field = None if tool is None else relations.shared_field([tool], parameter, scope.report)
        if field is None:
            return None
        kinds.append(field.kind)
    if any(kind != kinds[0] for kind in kinds):
        message = f"what {quote(let.name.text)} may be taken from is of different kinds"
        hint = "name fields of one kind, or an attribute for each"
        scope.report.error("TCC225", let.region, message, hint)
        return None
    return kinds[0]


def _calls(
    let: ast.LetStatement, chosen: Chosen | None, scope: Scope
) -> relations.ResolvedLookUp | None:
    tools = [] if chosen is None else [scope.tools[name] for name in chosen.tools]
    sound = [tool for tool in tools if tool is not None]
    if not sound or len(sound) < len(tools):
        return None
    keys = [relations.shared_field(sound, key, scope.report) for key in let.keys]
    good = [key for key in keys if key is not None]
    if len(good) < len(keys) or not _keys_fit(let, good, scope.report):
        return None
    return relations.ResolvedLookUp(
        keys=[(key.name, key.kind) for key in good], fields=_shared(sound)
    )


def _keys_fit(let: ast.LetStatement, keys: Sequence[relations.NamedField], report: Report) -> bool:
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
        found = [relations.field_of(tool, name) for tool in tools]
        kinds = [one.kind for one in found if one is not None]
        if len(kinds) == len(found) and all(kind == kinds[0] for kind in kinds):
            shared[name] = kinds[0]
    return shared


def _rows(let: ast.LetStatement, scope: Scope) -> relations.ResolvedLookUp | None:
    fields: list[dict[str, Kind]] = []
    keys: list[tuple[str, Kind]] = []
    for name, parameter in let.sources:
        tool = _tool_named(name, scope)
        field = None if tool is None else relations.shared_field([tool], parameter, scope.report)
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
            relations.NamedField(
                name=k.text, kind=cells[k.text], listed=False, answer=False, optional=False
            )
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
    return relations.ResolvedLookUp(keys=keys, fields=shared)


def _named(term: ast.Term) -> ast.Term:
    """A text in quotes where a field is due is its name."""
    if isinstance(term, ast.Constant) and term.number is None:
        return ast.FieldTerm("", (ast.Word(term.text, term.region, True),), term.region)
    return term


def _key_term(pair: ast.KeyPair, behind: bool) -> ast.Term | None:
    if pair.second is None:
        return ast.FieldTerm("own", (pair.first,), pair.first.region)
    return _named(pair.second) if behind else pair.second


def _alike(kind: object, found: relations.CheckedTerm) -> bool:
    return kind == found.kind or not {"mixed", "null"}.isdisjoint((str(kind), str(found.kind)))
