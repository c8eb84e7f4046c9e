"""What a core of version 1.2 learns of a session: first known values, and look-ups.

Normative text: docs/spec/core.md, section 7.  ``session.x`` is the first known one of some fields;
a look-up is of the latest call, or row of a list of records, with some keys: arguments of every
tool of its set, or fields of the records of every list.  Cost: linear in the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcc_certs.core.model import Tool
from tcc_certs.core.opened import fields_of
from tcc_certs.core.policies import Fields, Let, LookUp, cells_of, read_set, tools_of
from tcc_certs.errors import Code, ensure
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json
from tcc_certs.formats.schema import Known

MAX_KEYS = 8  # a look-up probes once for each choice of keys that calls have left out


def read_lets(value: Json, path: str, code: Code, known: Known) -> tuple[Let | LookUp, ...]:
    """What a session learns, strictly increasing by name.

    Raises:
        Rejected: `code`; D201 more keys than a decision may look for.
    """
    given = {one.name for one in known["given"]}
    tools: Sequence[Tool] = known["tools"]
    fields = Fields(tools=tuple(map(fields_of, tools)))
    found: list[Let | LookUp] = []
    for i, item in enumerate(schema.as_list(value, path, code, 1)):
        place = f"{path}[{i}]"
        members = schema.as_object(item, place, code, ("name",), ("calls", "keys", "of", "rows"))
        name = schema.as_name(members["name"], place, code)
        ensure(name not in given, code, place, "a name that is not given", name)
        if "keys" in members:
            found.append(_look_up(members, place, code, tools, fields))
        else:
            of = schema.as_object(item, place, code, ("name", "of"))["of"]
            found.append(Let(name=name, of=_sources(of, place, code, fields)))
    schema.ensure_increasing([one.name for one in found], path, code)
    return tuple(found)


def _sources(value: Json, path: str, code: Code, fields: Fields) -> tuple[tuple[int, str], ...]:
    """Fields, one at least, each once."""
    found = []
    for one in schema.as_list(value, path, code, 1):
        pair = schema.as_tuple(one, path, code, 2, "tool and field")
        tool = schema.as_whole(pair[0], path, code, len(fields.tools))
        name = schema.as_text(pair[1], path, code)
        ensure(name in fields.tools[tool], code, path, "a field of the tool", name)
        found.append((tool, name))
    ensure(len(set(found)) == len(found), code, path, "each field once", found)
    return tuple(found)


def _look_up(
    item: Mapping[str, Json], path: str, code: Code, tools: Sequence[Tool], fields: Fields
) -> LookUp:
    of = "calls" if "calls" in item else "rows"
    members = schema.as_object(item, path, code, ("keys", "name", of))
    name = schema.as_name(members["name"], path, code)
    keys = tuple(
        [schema.as_text(one, path, code) for one in schema.as_list(members["keys"], path, code, 1)]
    )
    ensure(len(set(keys)) == len(keys), code, path, "each key once", keys)
    ensure(len(keys) <= MAX_KEYS, Code.LIMIT, path, f"{MAX_KEYS} keys", len(keys))
    if of == "calls":
        calls = read_set(members["calls"], path, code, fields)
        for tool in tools_of(calls, len(tools)):
            ensure(
                _arguments(tools[tool]) >= set(keys), code, path, "keys that are arguments", keys
            )
        return LookUp(name=name, keys=keys, calls=calls)
    rows = _sources(members["rows"], path, code, fields)
    for tool, field in rows:
        cells = cells_of(fields.tools[tool].get(field))
        ensure(set(keys) <= set(cells), code, path, "a list of records with these keys", field)
    return LookUp(name=name, keys=keys, rows=rows)


def _arguments(tool: Tool) -> set[str]:
    names = {one.name for one in tool.parameters if not one.observed}
    return names | {one.name for one in tool.opened}
