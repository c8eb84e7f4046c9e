"""Honest sessions of every shape: outcomes, unknowns, what is resolved, observed and shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from tests.oracle_session.desk import desk
from tests.oracle_session.writer import SessionWriter

ORDER, PERSON, HALF, FULL = (
    {"kind": "order"}, {"kind": "person"}, {"part": "half"}, {"part": "full"},
)  # fmt: skip
SHOW = ('"send-mail"."corps é"', "find.id", "refund.amount", "refund.note", "refund.order")


def _plain(writer: SessionWriter) -> None:
    writer.call("find", ORDER, id="o-1")
    writer.done({"name": "x"})
    writer.call("refund", HALF, amount=1.5, order="o-1", note="late")
    writer.done()
    writer.call("close", ref="id-1")
    writer.done()
    writer.end()


def _observed(writer: SessionWriter) -> None:
    writer.call("run")
    writer.done(result="fail")
    writer.call("run")
    writer.done(result="pass")
    writer.refusal("close", "R202")
    writer.refusal("unknown tool", "R101")
    writer.call("close")
    writer.done()
    writer.end()


def _unknown(writer: SessionWriter) -> None:
    writer.call("find", ORDER, id="o-1", ref="a")
    writer.unknown()
    writer.call("find", ORDER, id="o-2", ref="b")
    writer.done()
    writer.call("refund", FULL, amount=2, order="o-2")
    writer.failed()
    writer.resolve(1, "done")
    writer.call("refund", {}, amount=2, order="o-1")
    writer.unknown()
    writer.call("close")
    writer.done()
    writer.end()


def _resolved(writer: SessionWriter) -> None:
    writer.call("run")
    writer.unknown()
    writer.resolve(1, "done", result="pass")
    writer.call("send-mail", about="o-1", urgent=True, **{"corps é": {"é": [1.5, None]}})
    writer.unknown()
    writer.call("close")
    writer.done()
    writer.resolve(2, "failed")
    writer.end()


def _unforeseen(writer: SessionWriter) -> None:
    writer.call("find", PERSON, id="o-1")
    writer.done()
    writer.call("run")
    writer.done([1], unforeseen=True)
    writer.refusal("run", "R302")
    writer.end(abandoned=True)


def _abandoned(writer: SessionWriter) -> None:
    writer.call("find", ORDER, id="o-1")
    writer.done()
    writer.call("refund", {}, amount=300.25, order="o-1")
    writer.done()
    writer.call("refund", FULL, amount=300.25, order="o-1")
    writer.unknown()
    writer.end(abandoned=True)


def _given_up(writer: SessionWriter) -> None:
    writer.call("run")
    writer.unknown()
    writer.call("run")
    writer.done(result="pass")
    writer.resolve(1, "done", result="pass")
    writer.end(abandoned=True)


def _left(writer: SessionWriter) -> None:
    writer.call("find", PERSON, id="o-1")
    writer.done()
    writer.end(abandoned=True)


SHAPES: Mapping[str, Callable[[SessionWriter], None]] = {
    "plain": _plain,
    "observed": _observed,
    "unknown": _unknown,
    "resolved": _resolved,
    "unforeseen": _unforeseen,
    "abandoned": _abandoned,
    "given-up": _given_up,
    "left": _left,
}
NAMES = [f"{name} {how}" for name in SHAPES for how in ("hidden", "shown")]


@cache
def shape(name: str) -> tuple[dict[str, Any], ...]:
    """The records of a session over the desk."""
    kind, how = name.split()
    writer = SessionWriter(desk(), show=SHOW if how == "shown" else ())
    SHAPES[kind](writer)
    return tuple(writer.records)
