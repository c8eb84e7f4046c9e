"""Some document holds every row of every table of a core: taken out, or loosened, it is seen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.policy import reader, zone_records
from tcc_certs.policy.reader import _core_of, core_json, read_question
from tests.certs.policy.examples import desk, everything
from tests.certs.table_mutants import changes, unseen

Document = dict[str, Any]


def outcome(document: Document) -> str:
    try:
        if "question" in document:
            return repr(read_question(document["question"], "question", Code.PROOF_SCHEMA))
        return repr(_core_of(document))
    except Rejected as refusal:
        return str(refusal)
    except Exception as error:
        return repr(error)


BECAUSE = {"because": "a reason"}
STATEMENTS: tuple[Document, ...] = (
    {"kind": "owe", "after": ["name", "refund"], "calls": ["name", "reply"], **BECAUSE},
    {"kind": "limit", "of": ["name", "refund"], "if": [["compare", "=", ["name", "order"],
     ["s", "o"]]], "per": [], "most": ["n", "1"]},
    {"kind": "total", "what": "depth", "most": 3, **BECAUSE},
    {"kind": "require", "on": "end", "lets": [], "then": ["name", "refund"],
     "if": [["name", "refund"]]},
)  # fmt: skip
# The reader takes this table only if the member is there.
EQUIVALENT = ["_AMONG text: among required: False"]


def corpus() -> list[tuple[str, Document]]:
    """Documents, each with the member that was changed, or without one."""
    whole = [json.loads(encode(core_json(core))) for core in (desk(), everything())]
    statements = [{**whole[0], "statements": [one]} for one in STATEMENTS]
    sizes = {"kind": "text", "min": 2, "max": 1}
    sized = [{**whole[0], "given": [{"name": "g", "type": sizes}]}]
    unused = [{**whole[0], "patterns": [[[0, 1]], *whole[0]["patterns"]]}]
    found = [("", document) for document in (*whole, *statements, *sized, *unused)]
    for document in (*whole, *statements):
        found += changes(document if document in whole else {"statements": document["statements"]})
    question = {"kind": "statement", "statements": [STATEMENTS[0]], "lets": whole[1]["lets"]}
    questions = [("", question), *changes(question)]
    return [
        *[
            (member, document if "tools" in document else {**whole[0], **document})
            for member, document in found
        ],
        *[(member, {"question": one}) for member, one in questions],
    ]


@pytest.mark.campaign
def test_every_row_of_a_table_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = corpus()
    assert all(outcome(document).startswith("Core(") for _, document in documents[:2])
    assert unseen((reader, zone_records), documents, outcome, monkeypatch) == EQUIVALENT
