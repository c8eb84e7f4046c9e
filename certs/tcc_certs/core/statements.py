"""The statements of a core on call sets: the call sets themselves, requires and forbids.

Normative text: docs/spec/core.md, section 1.  Cost: linear.
"""

from __future__ import annotations

from tcc_certs.core.model import CallSet, Forbid, ForbidBefore, ForbidNext, ForbidWith, Require
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json
from tcc_certs.formats.schema import as_list, as_whole, ensure_increasing

_SCHEMA = Code.CORE_SCHEMA


def read_patterns(value: Json, calls: int) -> tuple[CallSet, ...]:
    """The call sets, strictly increasing as lists.

    Raises:
        Rejected: C801.
    """
    items = as_list(value, "core.patterns", _SCHEMA)
    patterns = tuple(_ranges(item, f"core.patterns[{i}]", calls) for i, item in enumerate(items))
    ensure_increasing(patterns, "core.patterns", _SCHEMA)
    return patterns


def _ranges(value: Json, path: str, calls: int) -> CallSet:
    found = []
    least = 0
    for item in as_list(value, path, _SCHEMA):
        pair = as_list(item, path, _SCHEMA)
        require(2, len(pair), _SCHEMA, f"{path} range")
        low, high = (as_whole(end, path, _SCHEMA, calls + 1) for end in pair)
        ensure(least <= low < high, _SCHEMA, path, f"a range that starts at {least} or later", pair)
        found.append((low, high))
        least = high + 1
    return tuple(found)


def read_requires(value: Json, patterns: int) -> tuple[Require, ...]:
    """The ``before``, ``after`` and ``each`` statements.

    Raises:
        Rejected: C801.
    """
    found = []
    for i, entry in enumerate(as_list(value, "core.requires", _SCHEMA)):
        path = f"core.requires[{i}]"
        item = as_list(entry, path, _SCHEMA)
        require(3, len(item), _SCHEMA, f"{path} members")
        first, second = (as_whole(p, path, _SCHEMA, patterns) for p in item[1:])
        match item[0]:
            case "before" | "after" | "each" as order:
                found.append(Require(order, first, second))
            case other:
                raise Rejected(_SCHEMA, path, "before, after or each", other)
    keys = [(statement.order, statement.first, statement.second) for statement in found]
    ensure_increasing(keys, "core.requires", _SCHEMA)
    return tuple(found)


def read_forbids(value: Json, patterns: int) -> tuple[Forbid, ...]:
    """The ``before``, ``next`` and ``with`` statements.

    Raises:
        Rejected: C801.
    """
    found: list[Forbid] = []
    keys: list[tuple[object, ...]] = []
    for i, entry in enumerate(as_list(value, "core.forbids", _SCHEMA)):
        path = f"core.forbids[{i}]"
        match as_list(entry, path, _SCHEMA):
            case ["next", list() as members] if members:
                chain = tuple(as_whole(p, path, _SCHEMA, patterns) for p in members)
                found.append(ForbidNext(chain))
                keys.append(("next", chain))
            case ["before", first, second]:
                one, other = (as_whole(p, path, _SCHEMA, patterns) for p in (first, second))
                found.append(ForbidBefore(one, other))
                keys.append(("before", one, other))
            case ["with", first, second]:
                one, other = (as_whole(p, path, _SCHEMA, patterns) for p in (first, second))
                ensure(one <= other, _SCHEMA, path, f"at least {one}", other)
                found.append(ForbidWith(one, other))
                keys.append(("with", one, other))
            case item:
                raise Rejected(_SCHEMA, path, "before, next or with", item)
    ensure_increasing(keys, "core.forbids", _SCHEMA)
    return tuple(found)
