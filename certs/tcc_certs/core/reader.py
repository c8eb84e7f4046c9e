"""The core read from bytes: strict schema, everything ordered, unique and used.

Normative text: docs/spec/core.md, section 1.  One grammar has one core, so a reader that took a
second form of it would make two digests of one thing; hence every order, every derived text and
every "no others" of the specification is held to here, and the version, which follows from what is
used.  What reads monitors, open parameters, atoms and the patterns of texts is loaded for a core
that has some, and not before: who checks one without need not trust it.
Cost: linear in the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from tcc_certs.core import model
from tcc_certs.core.derived import call_text, minor_version
from tcc_certs.core.expressions import check_rules, read_expression, walk
from tcc_certs.core.model import Call, CallSet, Core, Expr, Forbid, Require
from tcc_certs.core.tables import TOOLS, read_limits
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json, decode, read_large
from tcc_certs.formats.schema import Check, Known, Table, maybe, read, row
from tcc_certs.limits import MAX_CALLS, MAX_CORE_BYTES

_SCHEMA = Code.CORE_SCHEMA


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
    return schema.as_mapping(decode(data, "core"), "core", _SCHEMA)


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
    number = read_large(value, path, code)
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


def _both_ends(known: Known, path: str, code: Code) -> None:
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
    Check(_both_ends),
    row("requires", schema.listed(_require, rises=attrgetter("order", "first", "second"))),
    row("forbids", schema.listed(_forbid, rises=_forbid_key)),
    Check(_patterns_are_used),
    maybe("given", _given, absent=()),
    maybe("lets", _lets, absent=()),
    maybe("monitors", _monitors, absent=()),
    maybe("pass", schema.listed(schema.one_of(*model.PASSABLE), 1, rises=str), "passed", ()),
    row("limits", read_limits),
)
