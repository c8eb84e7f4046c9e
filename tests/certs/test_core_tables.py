"""Every row of every table of a core is held by some document: taken out, or loosened, it is seen.

A mutant of a table has one of its rows or checks taken out, or a row made optional (or required),
or its form replaced by one that takes anything.  The documents are whole cores and single changes
to them; a mutant that reads every one of them as the tables do is not seen, and fails here.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import ModuleType
from typing import Any

import pytest

from tcc_certs.core import derived, opened, reader
from tcc_certs.core.reader import core_of
from tcc_certs.errors import Rejected
from tcc_certs.formats import schema
from tcc_certs.formats.schema import Check, Row, Table
from tcc_compiler.frontend import read_grammar_text
from tests.certs import test_core_later, test_core_places
from tests.certs.test_core import full_core
from tests.certs.test_core_later import later_core

MODULES = (reader, opened, derived)
PARTS = ("_PLACED",)  # of other tables, and read in them alone
STRANGE: tuple[Any, ...] = ([], {}, "", "a b", -1, 0, True, str(2**64), "0.5", "zzz")
Document = dict[str, Any]


def rich_core() -> Document:
    """A core whose tools have the members that the other two leave out."""
    core = later_core()
    amounts = {"price": 1, "latency_ms": 2, "epsilon": 3}
    atom = {"mechanism": "laplace", "scale": "2", "sensitivity": "1"}
    core["tools"][0]["models"] = [
        {
            "name": "m", **amounts, "adapter": "q", "quality": "0.25", "atom": atom,
            "execute": {**amounts, "atom": {**atom, "times": 2}},
        }
    ]  # fmt: skip
    core["tools"][0]["open"] += [
        {"name": "p", "type": "integer", "optional": True},
        {"name": "q", "type": "number", "optional": True},
        {"name": "r", "type": "flag", "optional": True},
        {"name": "s", "type": "json", "max": 9, "optional": True},
    ]
    core["tools"][1]["bind"] = {"kind": "python", "target": "t"}
    limits: list[Any] = [
        {"kind": kind, "op": "<=", "value": 5}
        for kind in ("cost", "depth", "epsilon", "latency", "price")
    ]
    of = {"tool": 1, "where": [[0, [1]]]}
    core["limits"] = [
        *limits,
        *core["limits"][1:],
        {"kind": "uses", "of": of, "op": ">=", "value": 0},
    ]
    return core


def parallel_core() -> Document:
    """A core of 1.2, whose calls may be under way together."""
    core = rich_core() | {"version": [1, 2]}
    core["tools"][0]["parallel"] = True
    return core


PLACED = """grammar placed version "1"

pass input, resources

given user: text max 9, role?: x | y
given who from b.t | a.o

tool a(k?: x | y at "/z/k", z: json)
  gives (s: p | q | *, o?: u | v,
         r: list of (i: list of integer 0 .. 9, n: list of number 0 .. 9, g: list of flag,
                     j: list of json max 9,
                     l: list of list min 1 max 3 distinct of text min 1 max 3 ~ "a+",
                     t: list of time "-05:00", d: list of date "+01:00"))
tool b()
  gives (s: p, t?: text min 1 max 3 or null at "/t/x", i?: integer 0 .. 9 or null at "/i/x",
         n?: number 0 .. 9 or null at "/n/x", g?: flag or null at "/g/x",
         j?: json or null at "/j/x", l?: list min 1 max 3 distinct of text or null at "/l/*",
         w?: time utc or null at "/w/x", d?: date "+01:00" or null at "/d/x") {
  errors mean failed ~ "E.*"
}

plan = any{0,3}
"""


def placed_core() -> Document:
    """A core of 1.2 with fields at places, answers, and what a session is given."""
    core = read_grammar_text(PLACED).core
    assert core is not None
    found: Document = json.loads(core)
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all members of objects."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        if isinstance(value, dict):
            yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def changes(core: Document) -> Iterator[tuple[str, Document]]:
    """The core with one member taken out, or something else in its place, or one more beside it."""
    for path in places(core):
        for value in (None, *STRANGE):
            changed = copy.copy(core)
            parent: Any = changed
            for key in path[:-1]:
                parent[key] = parent = copy.copy(parent[key])
            if value is None:
                del parent[path[-1]]
            else:
                parent[path[-1]] = value
            yield path[-1], changed


def corpus() -> list[tuple[str, Document]]:
    """Documents, each with the name of the member that was changed."""
    parallel = parallel_core()
    whole = [full_core(), later_core(), rich_core(), parallel, placed_core()]
    found = [("", core) for core in whole]
    for member, value, _ in test_core_places.REFUSED:
        core = full_core() | {member: value}
        found.append((member, {name: item for name, item in core.items() if item is not None}))
    for change, _ in test_core_later.REFUSED:
        core = later_core()
        change(core)
        found.append(("", core))
    for core in whole:
        # All but one member of the core with parallel calls was changed in the core before.
        told = changes(core)
        found += told if core is not parallel else (one for one in told if one[0] == "parallel")
    return found


def outcome(core: Document) -> str:
    try:
        return repr(core_of(core))
    except Rejected as refusal:
        return str(refusal)
    except Exception as error:
        return repr(error)


def all_tables(modules: Iterable[ModuleType]) -> dict[int, tuple[str, Table]]:
    """By identity, every table of some modules, and its name."""
    found: dict[int, tuple[str, Table]] = {}
    for module in modules:
        for name, value in vars(module).items():
            several = value if isinstance(value, Mapping) else {"": value}
            for tag, table in several.items():
                if (
                    name not in PARTS
                    and isinstance(table, tuple)
                    and table
                    and all(isinstance(entry, Row | Check) for entry in table)
                    and not isinstance(table, Row | Check)
                ):
                    found.setdefault(id(table), (f"{name} {tag}".strip(), table))
    return found


def loose(value: Any, *_: object) -> Any:
    """A form that takes anything."""
    return value


def mutants(table: Table) -> Iterator[tuple[str, Sequence[object], Table]]:
    """What was done, to which members, and the table that it makes."""
    for at, entry in enumerate(table):
        before, after = table[:at], table[at + 1 :]
        if isinstance(entry, Check):
            # The members that a check reads are constants of its code.
            read = entry.holds.__code__.co_consts
            yield f"without {entry.holds.__name__}", read, (*before, *after)
            continue
        yield f"without {entry.name}", (entry.name,), (*before, *after)
        turned = entry._replace(required=not entry.required)
        yield f"{entry.name} required: {turned.required}", (entry.name,), (*before, turned, *after)
        yield f"{entry.name} loose", (entry.name,), (*before, entry._replace(form=loose), *after)


def unseen(
    modules: Iterable[ModuleType],
    documents: Sequence[tuple[str, Document]],
    outcome: Callable[[Document], str],
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """The mutants of all tables of some modules by which every document reads as it did.

    Args:
        documents: each with the name of the member that was changed; "" where that is not known.
    """

    instead: dict[int, Table] = {}
    refused: list[int] = []  # the tables that refused the document being read, the innermost first
    read, read_rows = schema.read, schema.read_rows

    def mutant_of(reader: Callable[..., Any]) -> Callable[..., Any]:
        def mutated(table: Table, *args: Any) -> Any:
            try:
                return reader(instead.get(id(table), table), *args)
            except Exception:
                refused.append(id(table))
                raise

        return mutated

    plain = [outcome(document) for _, document in documents[:50]]
    for module in (schema, *modules):
        if hasattr(module, "read"):
            monkeypatch.setattr(module, "read", mutant_of(read))
    monkeypatch.setattr(schema, "read_rows", mutant_of(read_rows))
    due: list[str] = []
    refused_by: dict[int, list[int]] = {}
    for at, (_, document) in enumerate(documents):
        refused.clear()
        due.append(outcome(document))
        refused_by.setdefault(refused[0] if refused else 0, []).append(at)
    assert due[:50] == plain
    found = []
    for key, (name, table) in all_tables(modules).items():
        by_it = refused_by.get(key, [])
        for what, members, mutant in mutants(table):
            instead[key] = mutant
            # What this table refused for such a member comes first: one of them nearly always
            # differs.
            near = {"", *members}
            order = chain(
                (at for at in by_it if documents[at][0] in near),
                (at for at, (member, _) in enumerate(documents) if member in near),
                range(len(documents)),
            )
            if all(outcome(documents[at][1]) == due[at] for at in order):
                found.append(f"{name}: {what}")
        instead.clear()
    return found


def test_every_row_of_a_table_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = corpus()
    assert all(outcome(core).startswith("Core(") for _, core in documents[:5])
    assert unseen(MODULES, documents, outcome, monkeypatch) == []
