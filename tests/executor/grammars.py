"""Grammars to be done, and tools that keep a log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tcc as library
from tcc_runtime.artifact.load import Artifact

SHOP = """grammar shop version "1"

tool find(by: email | phone) { cost 0.1 }
tool check(kind: stock | credit) gives (answer: yes | no) { cost 0.1 }
tool refund(part: half | full, order: text ~ "ord-[0-9]{1,8}", amount: number 0 .. 500,
            note?: text) {
  cost 0.2
}
tool tell { cost 0.1 }
tool escalate { cost 9 }

plan = find check(answer=yes) refund tell | find check(answer=no) escalate | find escalate
"""
PLAIN = """grammar plain version "1"

tool a(k: 1 | 2) { cost 0.1 }
tool b { cost 0.2 }
tool c { cost 0.3 }

plan = a b c{0,2}
"""
ARGUMENTS = {"refund": {"order": "ord-17", "amount": 3}}
SEED = bytes(32)


def shop() -> Artifact:
    return library.compile_text(SHOP)


def plain() -> Artifact:
    return library.compile_text(PLAIN)


class Log:
    """Tools that note what they are called with, and answer what they are told.

    Args:
        answers: by tool: a value, or a callable from the arguments.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def tools(self, artifact: Artifact) -> dict[str, Callable[..., Any]]:
        return {tool.name: self._tool(tool.name) for tool in artifact.core.tools}

    def _tool(self, name: str) -> Callable[..., Any]:
        def called(**arguments: Any) -> Any:
            self.calls.append((name, arguments))
            answer = self.answers.get(name)
            return answer(arguments) if callable(answer) else answer

        return called

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]
