"""Mutants of tables of rows: each has a row or check less, or a row that takes too much.

A mutant that reads every document as the tables do is not seen, and fails its test.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import ModuleType
from typing import Any

import pytest

from tcc_certs.formats import schema
from tcc_certs.formats.schema import Check, Row, Table

STRANGE: tuple[Any, ...] = ([], {}, "", "a b", -1, 0, True, str(2**64), "0.5", "zzz")
Document = dict[str, Any]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all members of objects."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        if isinstance(value, dict):
            yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def changes(document: Document) -> Iterator[tuple[str, Document]]:
    """The document with one member taken out, or with another value in its place."""
    for path in places(document):
        for value in (None, *STRANGE):
            changed = copy.copy(document)
            parent: Any = changed
            for key in path[:-1]:
                parent[key] = parent = copy.copy(parent[key])
            if value is None:
                del parent[path[-1]]
            else:
                parent[path[-1]] = value
            yield path[-1], changed


def all_tables(modules: Iterable[ModuleType]) -> dict[int, tuple[str, Table]]:
    """By identity, every table of some modules, and its name."""
    found: dict[int, tuple[str, Table]] = {}
    for module in modules:
        for name, value in vars(module).items():
            several = value if isinstance(value, Mapping) else {"": value}
            for tag, table in several.items():
                if (
                    isinstance(table, tuple)
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
