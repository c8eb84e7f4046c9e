"""Where a name is declared, where it stands, and another name for it, across files.

Cost: that of :mod:`tcc.editor.grammars`.
"""

from __future__ import annotations

import os
from pathlib import Path

from lsprotocol import types
from pygls import uris

from tcc.editor.grammars import Budget, Rooted, grammars_with
from tcc.editor.texts import Texts
from tcc_compiler.editing.occurrences import Occurrence
from tcc_compiler.editing.renaming import NotRenamed, renamed


def definitions(mine: Rooted, found: Occurrence, texts: Texts) -> list[types.Location]:
    """Where a name is declared; of the path of a used file, that file."""
    if found.kind == "file":
        return _file(mine, found)
    places = mine.project.all_of(found.kind, found.key)
    return [_location(mine, place, texts) for place in places if place.defines]


def _file(mine: Rooted, found: Occurrence) -> list[types.Location]:
    here = mine.project.sources[found.region.source].path
    if here is None:
        return []
    try:
        target = Path(os.path.realpath(here.parent / found.key[0]))
    except (OSError, ValueError):
        return []
    if all(source.path != target for source in mine.project.sources):
        return []
    zero = types.Position(line=0, character=0)
    uri = uris.from_fs_path(str(target))
    return [types.Location(uri=uri, range=types.Range(start=zero, end=zero))] if uri else []


def references(
    mine: Rooted, found: Occurrence, texts: Texts, budget: Budget, *, declared: bool
) -> list[types.Location]:
    """Every place where a name stands, in all grammars that have its declaration.

    Args:
        declared: whether those where it is declared are among them.
    """
    rooted, _ = grammars_with(mine, _home(mine, found), texts, budget)
    made: dict[tuple[str, int, int], types.Location] = {}
    for one in rooted:
        for place in one.project.all_of(found.kind, found.key):
            if declared or not place.defines:
                at = _location(one, place, texts)
                key = (at.uri, at.range.start.line, at.range.start.character)
                made.setdefault(key, at)
    return list(made.values())


def rename(
    mine: Rooted, found: Occurrence, name: str, texts: Texts, budget: Budget
) -> types.WorkspaceEdit:
    """The edits that give a tool or a rule another name, in all grammars that have it.

    Raises:
        NotRenamed: it may not be, and why.
    """
    rooted, complete = grammars_with(mine, _home(mine, found), texts, budget)
    if not complete:
        raise NotRenamed("too many files may have this name; rename it with your own tools")
    edits = renamed([one.project for one in rooted], found, name)
    changes: dict[str, list[types.TextEdit]] = {}
    for edit in edits:
        uri = texts.uri(edit.source, mine.document)
        where = texts.places(edit.source.text).range(edit.start, edit.end)
        changes.setdefault(uri, []).append(types.TextEdit(range=where, new_text=edit.text))
    return types.WorkspaceEdit(changes=changes)


def _home(mine: Rooted, found: Occurrence) -> Path | None:
    """The file in which a name is declared, else that in which it stands."""
    owner = [o for o in mine.project.all_of(found.kind, found.key) if o.defines]
    place = owner[0] if owner else found
    return mine.project.sources[place.region.source].path


def _location(one: Rooted, place: Occurrence, texts: Texts) -> types.Location:
    source = one.project.sources[place.region.source]
    where = texts.places(source.text).range(place.region.start, place.region.end)
    return types.Location(uri=texts.uri(source, one.document), range=where)
