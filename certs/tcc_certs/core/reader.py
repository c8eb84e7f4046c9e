"""The core read from bytes: strict schema, everything ordered, unique and used.

Normative text: docs/spec/core.md.  One grammar has one core, so a reader that took a second form
of it would make two digests of one thing; hence every order, every derived text and every "no
others" of the specification is held to here, and the version, which follows from what is
used.  What reads monitors, open parameters and the patterns of texts is loaded for a core that has
some, and not before: who checks one without need not trust it.  Cost: linear in the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tcc_certs.core.calls import read_calls
from tcc_certs.core.expressions import check_rules, read_expression, walk
from tcc_certs.core.features import minor_version
from tcc_certs.core.limits import read_limits
from tcc_certs.core.model import (
    Call,
    CallSet,
    Core,
    Expr,
    Forbid,
    ForbidNext,
    Monitor,
    OneCall,
    Require,
    Tool,
)
from tcc_certs.core.statements import read_forbids, read_patterns, read_requires
from tcc_certs.core.tools import read_tools
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json, decode
from tcc_certs.formats.schema import (
    as_list,
    as_name,
    as_object,
    as_text,
    ensure_increasing,
    ensure_version,
)
from tcc_certs.limits import MAX_CORE_BYTES

_SCHEMA = Code.CORE_SCHEMA
_MEMBERS = [
    "calls", "forbids", "format", "grammar", "limits", "patterns", "plan", "requires", "rules",
    "tools", "version",
]  # fmt: skip


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
    value = decode(data, "core")
    if not isinstance(value, dict):
        raise Rejected(_SCHEMA, "core", "an object", value)
    return value


def core_of(value: Mapping[str, Json]) -> Core:
    """The core that a JSON object writes down; errors as in :func:`read_core`."""
    _check_version(value)
    top = as_object(value, "core", _SCHEMA, _MEMBERS, ["start", "goals", "monitors"])
    grammar = as_object(top["grammar"], "core.grammar", _SCHEMA, ["name", "version"])
    version = as_text(grammar["version"], "core.grammar.version", _SCHEMA)
    ensure_version(version, "core.grammar.version", _SCHEMA)
    tools = read_tools(top["tools"])
    calls = read_calls(top["calls"], tools)
    patterns = read_patterns(top["patterns"], len(calls))
    rules = _rules(top["rules"], len(patterns))
    plan = read_expression(top["plan"], "core.plan", len(patterns))
    check_rules(plan, rules)
    start, goals = _ends(top)
    requires = read_requires(top["requires"], len(patterns))
    forbids = read_forbids(top["forbids"], len(patterns))
    _check_used([plan, *rules.values()], requires, forbids, len(patterns))
    monitors: tuple[Monitor, ...] = ()
    if "monitors" in top:
        monitors = _monitors(top["monitors"], tools, calls, patterns, requires)
    core = Core(
        name=as_name(grammar["name"], "core.grammar.name", _SCHEMA),
        version=version,
        tools=tools,
        calls=calls,
        patterns=patterns,
        rules=rules,
        plan=plan,
        start=start,
        goals=goals,
        limits=read_limits(top["limits"], tools, calls),
        requires=requires,
        forbids=forbids,
        monitors=monitors,
    )
    require([1, minor_version(core)], top["version"], _SCHEMA, "core.version")
    return core


def _check_version(top: Mapping[str, Json]) -> None:
    require("tcc.core", top.get("format"), _SCHEMA, "core.format")
    version = top.get("version")
    if not isinstance(version, list) or [type(part) for part in version] != [int, int]:
        raise Rejected(_SCHEMA, "core.version", "two integers", version)
    known = version[0] == 1 and version[1] <= 1
    ensure(known, Code.UNKNOWN_VERSION, "core.version", "1.0 or 1.1", version)


def _rules(value: Json, patterns: int) -> Mapping[str, Expr]:
    rules: dict[str, Expr] = {}
    names = []
    for i, entry in enumerate(as_list(value, "core.rules", _SCHEMA)):
        path = f"core.rules[{i}]"
        pair = as_list(entry, path, _SCHEMA)
        require(2, len(pair), _SCHEMA, f"{path} members")
        name = as_name(pair[0], path, _SCHEMA)
        names.append(name)
        rules[name] = read_expression(pair[1], path, patterns)
    ensure_increasing(names, "core.rules", _SCHEMA)
    return rules


def _ends(top: Mapping[str, Json]) -> tuple[str | None, tuple[str, ...]]:
    """The start state and the goals; both or neither."""
    require("start" in top, "goals" in top, _SCHEMA, "core.goals")
    if "start" not in top:
        return None, ()
    items = as_list(top["goals"], "core.goals", _SCHEMA, 1)
    goals = tuple(as_name(item, "core.goals", _SCHEMA) for item in items)
    ensure_increasing(goals, "core.goals", _SCHEMA)
    return as_name(top["start"], "core.start", _SCHEMA), goals


def _monitors(
    value: Json,
    tools: Sequence[Tool],
    calls: Sequence[Call],
    patterns: Sequence[CallSet],
    requires: Sequence[Require],
) -> tuple[Monitor, ...]:
    from tcc_certs.core.monitors import check_shadows, read_monitors

    monitors = read_monitors(value, tools)
    check_shadows(monitors, tools, calls, patterns, requires)
    return monitors


def _check_used(
    expressions: Iterable[Expr],
    requires: Iterable[Require],
    forbids: Iterable[Forbid],
    patterns: int,
) -> None:
    used: set[int] = set()
    for expression in expressions:
        used.update(node.pattern for node in walk(expression) if isinstance(node, OneCall))
    for statement in requires:
        used.update((statement.first, statement.second))
    for forbid in forbids:
        chain = forbid.patterns if isinstance(forbid, ForbidNext) else (forbid.first, forbid.second)
        used.update(chain)
    unused = next((p for p in range(patterns) if p not in used), None)
    ensure(
        unused is None, _SCHEMA, f"core.patterns[{unused}]", "a pattern in use", "one that is not"
    )
