"""Sessions that have every record and every member: what forgeries start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tcc_certs.kernel import CheckedArtifact
from tests.oracle_session.asking import asked, asking
from tests.oracle_session.writer import SessionWriter, artifact_of

Records = list[dict[str, Any]]

SHOP = """grammar shop version "1"
given owner: text
given teams: list of text
given level?: low | high
given seen from look.by
tool look(order: text)
  gives (state: open | shut, by: text, total: number, note?: text or null,
         rows: list of (sku: text, cost?: number, kind: big | small | *))
tool pay(kind?: eco | biz, order: text, fee: number 0 .. 99, urgent?: flag, cards: list of text,
         memo?: text or null)
tool close
limit depth <= 9
before pay { let o = last(look(same order))
  require o.by = session.owner and o.state = open and fee <= o.total }
before pay require every cards(it ~ "[a-c]+[0-9]" and it != "b2") and memo = null
before pay require session.teams(it = "t") and session.level != high
before pay require no last(look(same order)).rows((cost != null and cost > 5)
  or sku = "bad" or kind = big)
before pay require last(look(same order)).note = null or session.seen = "ann"
limit sum(pay.fee within 1 d) per order, urgent <= 99 in session
"""
ROWS = [
    {"sku": "s1", "cost": 2, "kind": "small"},
    {"sku": "s2", "kind": "huge"},
]
ANSWER = {"state": "open", "by": "ann", "total": 9.5, "note": "x", "rows": ROWS}
GIVEN = {"owner": "ann", "teams": ["t", "u"], "level": "low"}


def shop() -> CheckedArtifact:
    return artifact_of(SHOP)


def _shop(**options: Any) -> SessionWriter:
    writer = SessionWriter(shop(), given=GIVEN, **options)
    writer.call("look", order="o-1", ref="id-1")
    writer.now += 1000
    writer.done(ANSWER)
    writer.call("pay", order="o-1", fee=5, urgent=True, cards=["a1", "c3"], kind="eco")
    writer.unknown()
    writer.now += 1000
    writer.made("look", ANSWER | {"note": None, "by": 7}, order="o-2")
    writer.refusal("pay", "R202", statement=1)
    writer.resolve(2, "done", who="bob")
    writer.made("pay", order="o-1", fee=4, cards=["a1"], memo=None)
    writer.call("look", order="o-3")
    writer.failed()
    writer.call("look", order="o-3")
    writer.unknown()
    writer.resolve(6, "done", {**ANSWER, "rows": []})
    writer.end()
    return writer


def _hidden() -> SessionWriter:
    return _shop()


def _shown() -> SessionWriter:
    return _shop(show=["look.by", "look.order", "look.rows", "pay.cards", "pay.order"])


def _open() -> SessionWriter:
    """A session that is abandoned with an answer of which a part is not known."""
    writer = SessionWriter(shop(), given={"owner": "ann", "teams": []}, parent=PARENT)
    writer.made("look", {"by": "ann"}, order="o-1")
    writer.end(abandoned=True)
    return writer


PARENT = "018bcfe5-6800-7d70-9cfe-5234117e9177"


def _asked() -> SessionWriter:
    writer = asked(100)
    writer.approval("1" * 32)
    writer.ask("pay", "2" * 32, 3, id="a", amount=100)
    writer.approval("2" * 32)
    writer.call("pay", approvals=["1" * 32, "2" * 32], id="a", amount=100)
    writer.failed(answered=True)
    writer.ask("pay", "3" * 32, 2, id="a", amount=60)
    writer.approval("3" * 32, "denied")
    writer.refusal("pay", "R209", statement=2)
    writer.ask("pay", "4" * 32, 2, id="a", amount=40)
    writer.approval("4" * 32)
    writer.call("pay", approvals=["4" * 32], id="a", amount=40)
    writer.unknown()
    writer.resolve(3, "answered")
    writer.end()
    return writer


def _shadow() -> SessionWriter:
    writer = SessionWriter(shop(), given=GIVEN, shadow=True, principal="ab" * 32)
    writer.made("look", ANSWER, order="o-1")
    writer.refusal("close", "R201", made=True)
    writer.end()
    return writer


_SHAPES: Mapping[str, Callable[[], SessionWriter]] = {
    "hidden": _hidden,
    "shown": _shown,
    "open": _open,
    "asked": _asked,
    "shadow": _shadow,
}
NAMES = tuple(_SHAPES)


def artifact_for(name: str) -> CheckedArtifact:
    """The artifact of a session."""
    return asking() if name == "asked" else shop()


@cache
def _made(name: str) -> tuple[dict[str, Any], ...]:
    return tuple(_SHAPES[name]().records)


def shape(name: str) -> Records:
    """The records of a session."""
    return list(_made(name))
