"""Renaming in shipped policies: back and forth gives the text again, and the core has the name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tcc_certs.policy.nodes import statement_json
from tcc_compiler.editing.project import Occurrence, Project, read_project
from tcc_compiler.editing.renaming import RENAMED, NotRenamed, name_in, renamed
from tcc_compiler.names.compile import compile_source
from tests.compiler.names.corpus import SHIPPED

NEW = "renamed_by_a_test"
WHOLE = [
    path for path in SHIPPED
    if re.search("^grammar", path.read_text("utf-8"), re.M)
    and not re.search("^use", path.read_text("utf-8"), re.M)
]  # fmt: skip


def read(text: str) -> Project:
    project = read_project(text, None, "g.tcg")
    assert project is not None
    return project


def applied(project: Project, found: Occurrence, name: str) -> str:
    text = project.sources[0].text
    edits = sorted(renamed([project], found, name), key=lambda edit: edit.start, reverse=True)
    for edit in edits:
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def statements(text: str) -> str:
    core = compile_source(text).core
    assert core is not None
    lets = [let.name for let in core.lets]
    return json.dumps([*map(statement_json, core.statements), *lets])


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
@pytest.mark.sampled(4)
def test_a_name_is_changed_and_changed_back(path: Path) -> None:
    text = path.read_text("utf-8")
    project = read(text)
    before = statements(text)
    done = set()
    for found in project.occurrences:
        key = (found.kind, found.key)
        if not found.defines or found.kind not in RENAMED or key in done or len(done) == 6:
            continue
        done.add(key)
        old = name_in(*key)
        after = applied(project, found, NEW)
        again = read(after)
        places = [one for one in again.occurrences if name_in(one.kind, one.key) == NEW]
        assert places and {one.kind for one in places} >= {found.kind}
        assert applied(again, places[0], old) == text
        assert re.sub(NEW, old, statements(after)) == before


def test_every_name_of_a_shipped_policy_may_be_changed_to_a_keyword_or_is_refused() -> None:
    path = next(path for path in SHIPPED if path.stem == "shop_desk")
    project = read(path.read_text("utf-8"))
    declared = [one for one in project.occurrences if one.defines and one.kind in RENAMED]
    changed = 0
    for found in declared[::14]:
        for name in ("not", "count", "same", "this", "before"):
            try:
                text = applied(project, found, name)
            except NotRenamed:
                continue
            changed += 1
            assert compile_source(text).core is not None
    assert changed > 8
