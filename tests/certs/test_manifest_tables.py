"""Every row of every table of a manifest is held: taken out, or loosened, it is seen.

The documents are manifests of each kind of artifact
and single changes to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats import artifact
from tcc_certs.formats.artifact import read_manifest
from tcc_certs.formats.codec import encode
from tcc_certs.policy.reader import read_core
from tests.certs.table_mutants import changes, unseen
from tests.forgery.artifacts import Forge
from tests.oracle.build import build
from tests.oracle.examples import example, example_core
from tests.oracle.network import build_relaxed
from tests.oracle.plans import plans

Document = dict[str, Any]
AT_THE_EDGES: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("schema",), "tcc.artifact/1"),
    (("critical",), ["gate", "rounded"]),
    (("critical",), ["relaxed", "gate"]),
    (("critical",), ["zzz"]),
    (("relaxed",), []),
    (("leaf_policy", "root"), {}),
)


def manifests() -> Iterator[Document]:
    """One of each kind of artifact."""
    of = plans(read_core(example_core()), 4)
    rounded = build(example_core(), of, round_counts=5)
    gate = build(example_core(), of, gate=True)
    relaxed = build_relaxed(example_core(), (1,), 4)
    for data in (example(), rounded, gate, relaxed):
        yield json.loads(json.dumps(Forge(data).manifest))


def corpus() -> list[tuple[str, Document]]:
    """The manifests, each by itself and with single changes, by the member that was changed."""
    whole = list(manifests())
    found: list[tuple[str, Document]] = [("", document) for document in whole]
    for document in whole:
        found += changes(document)
        for path, value in AT_THE_EDGES:
            changed = json.loads(json.dumps(document))
            parent = changed
            for name in path[:-1]:
                parent = parent[name]
            parent[path[-1]] = value
            found.append((path[-1], changed))
    return found


def outcome(document: Document) -> str:
    try:
        return repr(read_manifest(encode(document)))
    except Rejected as refusal:
        return str(refusal)
    except Exception as error:
        return repr(error)


def test_every_row_of_a_table_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = corpus()
    assert all(outcome(document).startswith("Manifest(") for _, document in documents[:4])
    assert unseen((artifact,), documents, outcome, monkeypatch) == []
