"""A delegated session is validated together with the session of its parent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tcc_certs.formats.container import write_container
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.session.delegation import link, validate_delegated
from tests.oracle_session.writer import KEY, SessionWriter, artifact_of, sealed

PARENT = """grammar parent version "1"
tool find(id: text, kind: text) gives (owner: text, open: yes | no)
tool pay(id: text, amount: number)
limit depth <= 20
before pay require last(find(same id)).owner = id and amount < 100
"""
CHILD = """grammar child version "1"
tool find(id: text, kind: order | person) gives (owner: text, open: yes | no)
tool pay(id: text, amount: number)
limit depth <= 9
before pay require last(find(same id)).owner = id and amount < 10
"""


def artifact_bytes(artifact: CheckedArtifact) -> bytes:
    return bytes(write_container(artifact.file.columns))


class Both:
    """A child and its parent, as a gate writes them."""

    def __init__(self) -> None:
        self.parent = SessionWriter(artifact_of(PARENT))
        name = self.parent.records[0]["session_id"]
        self.child = SessionWriter(artifact_of(CHILD), parent=name)

    def call(self, tool: str, attempt: int = 0, **arguments: Any) -> None:
        session = self.child.records[0]["session_id"]
        ref = link(session, len(self.child.course.history.calls) + 1, attempt)
        self.parent.call(tool, ref=ref, **arguments)
        self.child.call(tool, **arguments)

    def done(self, answer: Any = None) -> None:
        self.parent.done(answer)
        self.child.done(answer)

    def judged(self) -> Any:
        return judged(self, self.child.records, self.parent.records)


def judged(both: Both, child: list[Any], parent: list[Any]) -> Any:
    return validate_delegated(
        sealed(child), artifact_bytes(both.child.artifact), sealed(parent),
        artifact_bytes(both.parent.artifact), key=KEY,
    )  # fmt: skip


ANSWER = {"owner": "a", "open": "yes"}


def session() -> Both:
    both = Both()
    both.call("find", id="a", kind="order")
    both.done(ANSWER)
    both.call("pay", id="a", amount=5)
    both.done()
    return both


def test_the_claim_of_a_child_is_about_the_session_of_its_parent_too() -> None:
    both = session()
    both.child.end()
    found = both.judged()
    assert (found.verdict, found.claim_type) == (0, "Conformant"), found
    assert found.summary.endswith("each call is a call of its parent's session, too")
    ended = session()
    ended.child.end()
    ended.parent.end()
    assert ended.judged().claim_type == "Conformant"


def test_a_call_that_only_the_parent_has_was_not_made() -> None:
    both = Both()
    name = both.child.records[0]["session_id"]
    both.parent.call("find", ref=link(name, 1, 0), id="a", kind="order")
    both.parent.unknown()
    both.call("find", attempt=1, id="a", kind="order")
    both.done(ANSWER)
    both.parent.call("pay", ref=link(name, 2, 0), id="a", amount=5)
    both.parent.failed()
    both.child.end(abandoned=True)
    assert both.judged().claim_type == "ConformantPrefix"
    both.parent.records[6]["outcome"] = "done"
    item = both.judged().findings[0]
    assert (item.code, item.line, item.field) == ("S502", 3, "parent")


def child(at: int, **members: Any) -> Callable[[Both], None]:
    def change(both: Both) -> None:
        both.child.records[at] |= members

    return change


def parent(at: int, **members: Any) -> Callable[[Both], None]:
    def change(both: Both) -> None:
        both.parent.records[at] |= members

    return change


def other_answer(both: Both) -> None:
    records = json.loads(json.dumps(both.parent.records))
    records[2]["answers"]["owner"]["digest"] = both.parent.writer.digest(("s", "z"))
    both.parent.records = records[:3]
    both.child.records = both.child.records[:3]


FORGED: list[tuple[Callable[[Both], None], str, int, str]] = [
    (parent(1, ref="0" * 64), "S502", 2, "parent"),
    (parent(2, observed={"open": "no"}), "S503", 2, "outcome"),
    (other_answer, "S503", 2, "outcome"),
    (parent(3, call="find"), "S501", 1, "parent"),
    (parent(4, outcome="failed"), "S503", 4, "outcome"),
]


@pytest.mark.parametrize("at", range(len(FORGED)))
def test_a_contradiction_is_found(at: int) -> None:
    change, code, line, name = FORGED[at]
    both = session()
    change(both)
    found = next(one for one in both.judged().findings if one.code != "D301")
    assert (found.code.value, found.line, found.field) == (code, line, name)


def test_another_call_and_another_order_are_found() -> None:
    both = Both()
    both.call("find", id="a", kind="order")
    both.done(ANSWER)
    name = both.child.records[0]["session_id"]
    both.parent.call("find", ref=link(name, 2, 0), id="b", kind="order")
    both.parent.done(ANSWER)
    both.child.call("find", id="c", kind="order")
    both.child.done(ANSWER)
    found = [one for one in both.judged().findings if one.code != "D301"]
    assert [(one.code.value, one.line, one.field) for one in found] == [("S502", 4, "call")]
    mixed = Both()
    name = mixed.child.records[0]["session_id"]
    for seq, order in ((2, "b"), (1, "a")):
        mixed.parent.call("find", ref=link(name, seq, 0), id=order, kind="order")
        mixed.parent.done(ANSWER)
    for order in ("a", "b"):
        mixed.child.made("find", ANSWER, id=order, kind="order")
    found = [one for one in mixed.judged().findings if one.code != "D301"]
    assert [(one.code.value, one.line) for one in found] == [("S502", 4)]


def test_a_child_names_its_parent() -> None:
    both = session()
    other = SessionWriter(artifact_of(PARENT), started_ms=1)
    found = judged(both, both.child.records, other.records)
    codes = [one.code.value for one in found.findings if one.code != "D301"]
    assert codes == ["S501"]


def test_a_parent_that_is_not_valid_is_no_parent() -> None:
    both = session()
    both.parent.records[3] |= {"states": [0]}
    found = [one.code.value for one in both.judged().findings if one.code != "D301"]
    assert found == ["S501"]
