"""The core read from bytes: strict schema, everything ordered, unique and used.

Normative text: docs/spec/core.md, sections 1, 2 and 4.  One grammar has one core, so a reader that
took a second form of it would make two digests of one thing; hence every order, every derived text
and every "no others" of the specification is held to here, and the version, which follows from what
is used.  Each kind of object has a table of rows, which :mod:`tcc_certs.formats.schema` interprets.
Readers of monitors, open parameters, atoms and patterns of texts are loaded for a core that has
some, so that whoever checks one without need not trust them.
Cost: linear in the bytes; for each ``uses`` limit linear in its tool's calls, for each ``sum``
limit linear in its parameter's values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from tcc_certs.core import model
from tcc_certs.core.derived import Owned, call_text, minor_version, read_selection, selection_text
from tcc_certs.core.model import Call, CallSet, Core, Expr, Forbid, Limit, Parameter, Require, Tool
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats import codec, schema
from tcc_certs.formats.codec import Json
from tcc_certs.formats.schema import Check, Known, Table, dropped, maybe, read, row, tagged
from tcc_certs.limits import MAX_CALLS, MAX_CORE_BYTES
from tcc_certs.policy.expressions import check_rules, read_expression, walk
from tcc_certs.values.declared import json_of

MAX_LOOKED_AT = 4 * MAX_CALLS  # calls and values that the limits of a core may look at
_SCHEMA = Code.CORE_SCHEMA
_ABSENT = ""
_REST = "*"  # no canonical text of a value
_PLACES = 9


def read_core(data: bytes) -> Core:
    """The core in `data`.

    Raises:
        Rejected: B1xx its JSON; C801 what the specification forbids; D102 another version; D201
            a limit of the kernel.
    """
    return core_of(decode_core(data))


def decode_core(data: bytes) -> Mapping[str, Json]:
    """The JSON object of a core, its size and its bytes checked and nothing else."""
    ensure(len(data) <= MAX_CORE_BYTES, Code.LIMIT, "core", f"{MAX_CORE_BYTES} bytes", len(data))
    return schema.as_mapping(codec.decode(data, "core"), "core", _SCHEMA)


def core_of(value: Mapping[str, Json]) -> Core:
    """The core that a JSON object writes down; errors as in :func:`read_core`."""
    head = schema.read_rows(HEAD, value, "core", _SCHEMA, {})
    made = read(CORE, value, "core", _SCHEMA, {}, tuple(head))
    lets = made.pop("lets")
    looks = tuple([one for one in lets if hasattr(one, "keys")])
    made |= {"lets": tuple([one for one in lets if one not in looks]), "looks": looks}
    core = Core(**made.pop("grammar"), **made)
    require([1, minor_version(core)], head["version"], _SCHEMA, "core.version")
    return core


# Tools: what they take, give and answer, and the models that make their calls.


def _values(value: Json, path: str, code: Code, known: Known) -> tuple[str, ...]:
    """Distinct canonical texts; the first of several may be empty, the last observed one ``*``."""
    items = schema.as_list(value, path, code, 1)
    absent = int(items[0] == _ABSENT and len(items) > 1)
    rest = int(items[-1] == _REST and known["observed"] and len(items) > absent + 1)
    end = len(items) - rest
    named = [_value_text(items[i], f"{path}[{i}]", code) for i in range(absent, end)]
    texts = (_ABSENT,) * absent + tuple(named) + (_REST,) * rest
    ensure(len(set(texts)) == len(texts), code, path, "distinct values", "a repeat")
    return texts


def _value_text(value: Json, path: str, code: Code) -> str:
    """The canonical text of a value; one JSON value has one."""
    text = schema.as_text(value, path, code)
    try:
        json_of(text)
    except Rejected as refusal:
        raise Rejected(code, path, refusal.expected, refusal.found) from None
    return text


def _place(value: Json, path: str, code: Code, known: Known) -> Any:
    from tcc_certs.core.opened import read_place

    return read_place(value, path, code, known)


PARAMETER: Table = (
    maybe("observed", schema.as_true, absent=False),
    row("values", _values),
    row("name", codec.read_name),
    maybe("at", _place),
)
_LISTED = schema.listed(schema.object_of(PARAMETER, Parameter))


def _parameters(value: Json, path: str, code: Code, known: Known) -> tuple[Parameter, ...]:
    """The parameters that are part of a call, the observed ones after all others."""
    found: tuple[Parameter, ...] = _LISTED(value, path, code, known)
    for i in range(1, len(found)):
        late = found[i - 1].observed and not found[i].observed
        ensure(not late, code, f"{path}[{i}]", "observed parameters last", found[i].name)
    return found


def _atom(value: Json, path: str, code: Code, _: Known) -> Any:
    """An atom; who reads none has none of its reader to trust, nor to load."""
    from tcc_certs.policy.atoms import canonical_atom

    return canonical_atom(value, path, code)


def _quality(value: Json, path: str, code: Code, _: Known) -> tuple[int, int]:
    """A quality; the one that holds without the member is never written."""
    number, places = codec.parse_decimal(schema.as_text(value, path, code), path, code)
    holds = 0 < number <= 10**places and places <= _PLACES and (number, places) != model.HALF
    ensure(holds, code, path, "above 0, at most 1, nine places at most, and not 0.5", value)
    return number, places


def _execute(value: Json, path: str, code: Code, known: Known) -> dict[str, Any]:
    """What making a call takes; executing tells of what the model looks at as asking does."""
    made = read(AMOUNTS, value, path, code, known)
    lost = known["atom"] is not None and made["atom"] is None
    ensure(not lost, code, f"{path}.atom", "an atom, as the model has one", "none")
    return made


AMOUNTS: Table = (
    row("price", schema.as_unsigned),
    row("latency_ms", schema.as_unsigned, "latency"),
    row("epsilon", schema.as_unsigned),
    maybe("atom", _atom),
)
MODEL: Table = (
    row("name", schema.as_name),
    maybe("adapter", schema.as_text, absent=""),
    maybe("quality", _quality, absent=model.HALF),
    *AMOUNTS,
    maybe("execute", _execute),
)


def _model(execute: dict[str, Any] | None, **made: Any) -> model.Model:
    """A model, with the one that makes calls in it."""
    asked = model.Model(**made)
    return asked if execute is None else replace(asked, execute=replace(asked, **execute))


BINDINGS: Mapping[str, Table] = {
    "mcp": (row("server", schema.as_text), row("tool", schema.as_text)),
    "python": (row("target", schema.as_text),),
}


def _bind(value: Json, path: str, code: Code, known: Known) -> None:
    tagged(value, "kind", BINDINGS, "mcp or python", path, code, known, BINDINGS["mcp"])


def _opened(value: Json, path: str, code: Code, known: Known) -> Any:
    from tcc_certs.core.opened import read_opened

    return read_opened(value, path, code, known)


def _names_differ(known: Known, path: str, code: Code) -> None:
    fields = (*known["params"], *known["open"], *known["answers"])
    names = [field.name for field in fields]
    ensure(len(set(names)) == len(names), code, f"{path}.params", "distinct names", names)
    if any(field.at is not None for field in fields):
        from tcc_certs.core.opened import ensure_heads

        ensure_heads(known, f"{path}.open", code)


def _error_text(value: Json, path: str, code: Code, known: Known) -> str:
    """The pattern of texts that say an error."""
    from tcc_certs.values.text_syntax import ensure_quick

    ensure(known["errors"], code, path, "a tool whose errors mean failed", "another")
    pattern = schema.as_text(value, path, code)
    ensure_quick(pattern, 1, path)
    return pattern


def _strict_is_answered(known: Known, path: str, code: Code) -> None:
    answers = any(parameter.observed for parameter in known["params"])
    ensure(answers or not known["strict"], code, f"{path}.strict", "an observed parameter", "none")


def _takes_and_gives(known: Known, path: str, code: Code) -> None:
    require(known["in"] is not None, known["out"] is not None, code, f"{path}.out")


TOOL: Table = (
    row("params", _parameters, "parameters"),
    maybe("open", _opened, "opened", ()),
    maybe("answers", _opened, absent=()),
    Check(_names_differ),
    dropped(maybe("doc", schema.as_text)),
    maybe("quotes", schema.word("same"), "quotes_same", absent=False),
    maybe("errors", schema.word("failed"), "errors_failed", absent=False),
    maybe("error_text", _error_text),
    maybe("parallel", schema.as_true, absent=False),
    dropped(maybe("bind", _bind)),
    maybe("strict", schema.as_true, absent=False),
    Check(_strict_is_answered),
    row("name", codec.read_name),
    maybe("in", schema.as_name, "takes"),
    maybe("out", schema.as_name, "gives"),
    Check(_takes_and_gives),
    maybe("models", schema.listed(schema.object_of(MODEL, _model), 1), absent=()),
)
TOOLS = schema.listed(schema.object_of(TOOL, Tool), rises=attrgetter("name"))


# Limits, and what each of them counts or adds up.


def _parameter(value: Json, path: str, code: Code, known: Known) -> int:
    """The place of a parameter whose values are numbers; what is absent adds nothing."""
    parameters = known["tools"][known["tool"]].parameters
    place = schema.as_whole(value, path, code, len(parameters))
    for text in parameters[place].values:
        if text and codec.nano_of(text) is None:
            raise Rejected(code, path, "numbers of at least 0, whole in nano-units", text)
    return place


SUMMED: Table = (
    row("tool", schema.here(schema.index_in("tools"))),
    row("param", schema.here(_parameter)),
)

_AT_MOST = row("op", schema.word("<="))
_COUNTED: Table = (row("value", schema.as_unsigned), _AT_MOST)
LIMITS: Mapping[str, Table] = {
    "depth": _COUNTED,
    "price": _COUNTED,
    "latency": _COUNTED,
    "cost": (row("value", schema.as_large), _AT_MOST),
    "epsilon": _COUNTED,
    "uses": (
        row("value", schema.as_unsigned),
        row("op", schema.one_of("<=", ">=")),
        row("of", read_selection),
    ),
    "sum": (*_COUNTED, row("of", schema.object_of(SUMMED, lambda tool, param: (tool, param)))),
}


def read_limits(value: Json, path: str, code: Code, known: Known) -> tuple[Limit, ...]:
    """The limits, strictly increasing by their canonical texts; call sets of ``uses`` derived.

    Raises:
        Rejected: C801; D201 where the call sets and values take too much work.
    """
    owned = Owned(known["tools"], known["calls"])
    limits = []
    work = 0
    for i, item in enumerate(schema.as_list(value, path, code)):
        place = f"{path}[{i}]"
        found = tagged(item, "kind", LIMITS, "a kind of limit", place, code, known, _COUNTED)
        limit, looked_at = _limit(*found, known, owned)
        work += looked_at
        ensure(work <= MAX_LOOKED_AT, Code.LIMIT, path, "fewer uses limits", "more")
        limits.append(limit)
    schema.ensure_increasing([limit.text for limit in limits], path, code)
    return tuple(limits)


def _limit(kind: Any, made: Mapping[str, Any], known: Known, owned: Owned) -> tuple[Limit, int]:
    """A limit with its canonical text, and how many calls or values were looked at."""
    tools, value = known["tools"], made["value"]
    match kind:
        case "uses":
            of, op = made["of"], made["op"]
            text = f"uses({selection_text(of, tools)}){op}{value}"
            found = owned.selected(of)
            limit = Limit(kind=kind, value=value, text=text, least=op == ">=", calls=found)
            return limit, owned.size(of.tool)
        case "sum":
            number, place = made["of"]
            parameter = tools[number].parameters[place]
            name = f"{codec.written(tools[number].name)}.{codec.written(parameter.name)}"
            text = f"sum({name})<={codec.format_decimal(value, 9)}"
            limit = Limit(kind=kind, value=value, text=text, parameter=made["of"])
            return limit, len(parameter.values)
        case "cost" | "epsilon":
            text = f"{kind}<={codec.format_decimal(value, 9)}"
            return Limit(kind=kind, value=value, text=text), 0
        case _:
            return Limit(kind=kind, value=value, text=f"{kind}<={value}"), 0


# The core around them: calls, patterns, rules, statements.


def _calls(value: Json, path: str, code: Code, known: Known) -> tuple[Call, ...]:
    """The calls, strictly increasing by the bytes of their texts."""
    size = len(schema.as_list(value, path, code))
    ensure(size <= MAX_CALLS, Code.LIMIT, path, f"{MAX_CALLS} at most", size)
    calls: tuple[Call, ...] = CALLS(value, path, code, known)
    return calls


def _call(value: Json, path: str, code: Code, known: Known) -> Call:
    item = schema.as_tuple(value, path, code, 7, "members")
    tool = schema.as_whole(item[0], path, code, len(known["tools"]))
    parameters = known["tools"][tool].parameters
    chosen = schema.as_tuple(item[1], path, code, len(parameters), "values")
    pairs = zip(chosen, parameters, strict=True)
    values = tuple([schema.as_whole(at, path, code, len(of.values)) for at, of in pairs])
    low, high = _cost(item[2], path, code), _cost(item[3], path, code)
    ensure(low <= high, code, path, f"cost_high of at least {low}", high)
    price, latency, epsilon = [schema.as_unsigned(amount, path, code) for amount in item[4:]]
    return Call(
        text=call_text(known["tools"][tool], values), tool=tool, values=values,
        cost_low=low, cost_high=high, price=price, latency=latency, epsilon=epsilon,
    )  # fmt: skip


def _cost(value: Json, path: str, code: Code) -> int:
    """A signed number of 64 bits."""
    number = codec.read_large(value, path, code)
    ensure(-(1 << 63) <= number < 1 << 63, code, path, "64 bits, signed", number)
    return number


def _ranges(value: Json, path: str, code: Code, known: Known) -> CallSet:
    """Half-open ranges of calls, increasing and not touching."""
    found = []
    least = 0
    for item in schema.as_list(value, path, code):
        pair = schema.as_tuple(item, path, code, 2, "range")
        low, high = (schema.as_whole(end, path, code, len(known["calls"]) + 1) for end in pair)
        ensure(least <= low < high, code, path, f"a range that starts at {least} or later", pair)
        found.append((low, high))
        least = high + 1
    return tuple(found)


def _rules(value: Json, path: str, code: Code, known: Known) -> Mapping[str, Expr]:
    rules: dict[str, Expr] = {}
    names = []
    for i, entry in enumerate(schema.as_list(value, path, code)):
        place = f"{path}[{i}]"
        pair = schema.as_tuple(entry, place, code, 2, "members")
        name = schema.as_name(pair[0], place, code)
        names.append(name)
        rules[name] = _expression(pair[1], place, code, known)
    schema.ensure_increasing(names, path, code)
    return rules


def _expression(value: Json, path: str, _: Code, known: Known) -> Expr:
    return read_expression(value, path, len(known["patterns"]))


def _rules_hold(known: Known, _path: str, _code: Code) -> None:
    check_rules(known["plan"], known["rules"])


def _goals(value: Json, path: str, code: Code, _: Known) -> tuple[str, ...]:
    goals = tuple(
        [schema.as_name(item, path, code) for item in schema.as_list(value, path, code, 1)]
    )
    schema.ensure_increasing(goals, path, code)
    return goals


def _start_and_goals(known: Known, path: str, code: Code) -> None:
    require(known["start"] is not None, known["goals"] != (), code, f"{path}.goals")


def _require(value: Json, path: str, code: Code, known: Known) -> Require:
    order, *sides = schema.as_tuple(value, path, code, 3, "members")
    first, second = _sides(sides, path, code, known)
    if order not in ("before", "after", "each"):
        raise Rejected(code, path, "before, after or each", order)
    return Require(order, first, second)  # type: ignore[arg-type]


def _forbid(value: Json, path: str, code: Code, known: Known) -> Forbid:
    match schema.as_list(value, path, code):
        case ["next", list() as sides] if sides:
            return model.ForbidNext(_sides(sides, path, code, known))
        case ["before", _, _] as item:
            return model.ForbidBefore(*_sides(item[1:], path, code, known))
        case ["with", _, _] as item:
            one, other = _sides(item[1:], path, code, known)
            ensure(one <= other, code, path, f"at least {one}", other)
            return model.ForbidWith(one, other)
        case item:
            raise Rejected(code, path, "before, next or with", item)


def _forbid_key(statement: Forbid) -> tuple[object, ...]:
    """What forbids are ordered by: their lists in the core."""
    if isinstance(statement, model.ForbidNext):
        return "next", statement.patterns
    kind = "before" if isinstance(statement, model.ForbidBefore) else "with"
    return kind, statement.first, statement.second


def _sides(sides: Sequence[Json], path: str, code: Code, known: Known) -> tuple[int, ...]:
    return tuple([schema.as_whole(side, path, code, len(known["patterns"])) for side in sides])


def _patterns_are_used(known: Known, path: str, code: Code) -> None:
    used: set[int] = set()
    for expression in (known["plan"], *known["rules"].values()):
        used.update(node.pattern for node in walk(expression) if isinstance(node, model.OneCall))
    for statement in (*known["requires"], *known["forbids"]):
        chain = isinstance(statement, model.ForbidNext)
        used.update(statement.patterns if chain else (statement.first, statement.second))
    unused = next((p for p in range(len(known["patterns"])) if p not in used), None)
    place = f"{path}.patterns[{unused}]"
    ensure(unused is None, code, place, "a pattern in use", "one that is not")


def _monitors(value: Json, path: str, code: Code, known: Known) -> Any:
    from tcc_certs.core.opened import read_monitors

    return read_monitors(value, path, code, known)


def _given(value: Json, path: str, code: Code, known: Known) -> Any:
    from tcc_certs.core.opened import read_given

    return read_given(value, path, code, known)


def _lets(value: Json, path: str, code: Code, known: Known) -> Any:
    from tcc_certs.core.lets import read_lets

    return read_lets(value, path, code, known)


HEAD: Table = (row("format", schema.word("tcc.core")), row("version", schema.format_version(2)))
CALLS = schema.listed(_call, rises=attrgetter("text"))
GRAMMAR: Table = (row("version", schema.as_version), row("name", schema.as_name))
CORE: Table = (
    row("grammar", schema.object_of(GRAMMAR, dict)),
    row("tools", TOOLS),
    row("calls", _calls),
    row("patterns", schema.listed(_ranges, rises=tuple)),
    row("rules", _rules),
    row("plan", _expression),
    Check(_rules_hold),
    maybe("goals", _goals, absent=()),
    maybe("start", schema.as_name),
    Check(_start_and_goals),
    row("requires", schema.listed(_require, rises=attrgetter("order", "first", "second"))),
    row("forbids", schema.listed(_forbid, rises=_forbid_key)),
    Check(_patterns_are_used),
    maybe("given", _given, absent=()),
    maybe("lets", _lets, absent=()),
    maybe("monitors", _monitors, absent=()),
    maybe("pass", schema.listed(schema.one_of(*model.PASSABLE), 1, rises=str), "passed", ()),
    row("limits", read_limits),
)
