"""Look-ups of a core of version 1.2: the latest call, or row of an answer, with some keys.

Normative text: docs/spec/core.md, section 7.  Their keys are arguments of every tool of the set,
or fields of the records of every list.  Cost: linear in the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcc_certs.core.model import Tool
from tcc_certs.core.policies import Fields, LookUp, cells_of, read_set, tools_of
from tcc_certs.errors import Code, ensure
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json

MAX_KEYS = 8  # a look-up probes once for each choice of keys that calls have left out


def read_look_up(
    item: Mapping[str, Json], path: str, code: Code, tools: Sequence[Tool], fields: Fields
) -> LookUp:
    """The member of ``lets`` that has keys.

    Raises:
        Rejected: `code`; D201 more keys than a decision may look for.
    """
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
            arguments = _arguments(tools[tool])
            ensure(arguments >= set(keys), code, path, "keys that are arguments", keys)
        return LookUp(name=name, keys=keys, calls=calls)
    rows = []
    for one in schema.as_list(members["rows"], path, code, 1):
        pair = schema.as_tuple(one, path, code, 2, "tool and field")
        tool = schema.as_whole(pair[0], path, code, len(tools))
        field = schema.as_text(pair[1], path, code)
        cells = cells_of(fields.tools[tool].get(field))
        ensure(set(keys) <= set(cells), code, path, "a list of records with these keys", field)
        rows.append((tool, field))
    ensure(len(set(rows)) == len(rows), code, path, "each list once", rows)
    return LookUp(name=name, keys=keys, rows=tuple(rows))


def _arguments(tool: Tool) -> set[str]:
    names = {one.name for one in tool.parameters if not one.observed}
    return names | {one.name for one in tool.opened}
