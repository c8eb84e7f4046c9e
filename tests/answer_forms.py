"""Answers in the form of MCP, and what they make of a call: the table of the tests of doors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

GRAMMAR = """grammar desk version "1"

tool say(how: text max 9000) gives (v?: 0 | 0.1 | 5) { errors mean failed ~ "Error: .*" }
tool pay

plan = any{0,9}

before pay require say
"""
TIMES = """grammar desk version "1"

tool look(at: time) gives (was: time)
tool pay(at: time)

plan = look pay

before pay require look(same at, was = this.at)
"""
_MOMENT = "2024-02-29T12:30:15.123"
# One millisecond, written with more and more digits.
LONG, LONGER, SHORT = f"{_MOMENT}{'4' * 41}Z", f"{_MOMENT}{'9' * 4000}+00:00", f"{_MOMENT}Z"
ERROR, FINE = "Error: no such order", "all is well"


def texts(*found: str) -> list[dict[str, Any]]:
    """Blocks of content."""
    return [{"type": "text", "text": one} for one in found]


@dataclass(frozen=True)
class Form:
    """A result of a tool.

    Attributes:
        seen: the observed value; "" for one that is left out, None for one that is not known.
    """

    name: str
    content: list[dict[str, Any]]
    structured: dict[str, Any] | None = None
    error: bool = False
    outcome: str = "done"
    seen: str | None = ""

    @property
    def result(self) -> dict[str, Any]:
        """The result as a server writes it."""
        beside = {} if self.structured is None else {"structuredContent": self.structured}
        return {"content": self.content, **beside, "isError": self.error}


IMAGE = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
EMBEDDED = {"type": "resource", "resource": {"uri": "file:///a", "text": ERROR}}
_LONG = "1" * 4001
FORMS = [
    Form("a lone text", texts(ERROR), outcome="failed"),
    Form("beside its structured content", texts(ERROR), {"result": ERROR}, outcome="failed"),
    Form("two texts", texts(ERROR, ERROR), outcome="failed"),
    Form("a list of texts", texts(ERROR, ERROR), {"result": [ERROR, ERROR]}, outcome="failed"),
    Form("in a member", texts(json.dumps({"error": ERROR})), {"error": ERROR}, outcome="failed"),
    Form("a resource", [EMBEDDED], outcome="failed"),
    Form("beside an image", [IMAGE, *texts(ERROR)], outcome="failed"),
    Form("marked", texts(FINE), error=True, outcome="failed"),
    Form("one of two texts", texts(FINE, ERROR), outcome="unknown"),
    Form("beside other content", texts(ERROR), {"v": 5}, outcome="unknown"),
    Form("in structured content alone", texts(FINE), {"result": ERROR}, outcome="unknown"),
    Form("beside a number", [], {"sent": 30, "note": ERROR}, outcome="unknown"),
    Form("deep", [], {"a": [{"b": [FINE, {"c": ERROR}]}]}, outcome="unknown"),
    Form("no error", texts(FINE)),
    Form("no error, twice", texts(FINE), {"result": FINE}),
    Form("structured", texts('{"v": 5}'), {"v": 5}, seen="5"),
    Form("a number", texts('{"v": 5}'), seen="5"),
    Form("another writing", texts('{"v": 0.10}'), seen="0.1"),
    Form("an exponent", texts('{"v": 5e0}'), seen="5"),
    Form("duplicates", texts('{"v":5,"v":0.1}'), seen=None),
    Form("duplicates elsewhere", texts('{"w":[{"a":1,"a":1}]}'), seen=None),
    Form("nearly listed", texts(f'{{"v":0.1{"0" * 30}1}}'), seen=None),
    Form("nearly zero", texts('{"v":1e-400}'), seen=None),
    Form("too many digits", texts(f'{{"v":5.{"0" * 4001}}}'), seen=None),
    Form("too large", texts(f'{{"v":{_LONG}}}'), seen=None),
    Form("beyond all ranges", texts('{"v":1e99999999999999999999}'), seen=None),
    Form("no number", texts('{"v":NaN}'), seen=None),
]
