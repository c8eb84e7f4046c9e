"""Sessions written line by line, as docs/policies.md shows them, and played through a gate.

A line is a call, its arguments, its answer after `->`, and the decision of the gate:

    find_order {"order": "A1"} -> {"total": 50}    allowed

The answer may also be `unknown`, `failed` or `error` (an error that the agent read).  The decision
is `allowed` or the code of the refusal.  `session {..}` begins another session with these
attributes, `wait 30 m` lets time pass, and `finish` ends the session.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tcc

START = 1_715_767_200_000  # Wednesday, 2024-05-15, 10:00 UTC
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_OUTCOMES = ("unknown", "failed", "error")


class Player:
    """The sessions of one policy: they share a clock and an account."""

    def __init__(self, text: str, folder: Path) -> None:
        self._artifact = tcc.compile_text(text)
        self._now = START
        self._account: tcc.Account | None = None
        if "across sessions" in text:
            self._account = tcc.Account(folder / "page.account", clock=self._clock)
        self._gate: tcc.Gate | None = None

    def _clock(self) -> int:
        return self._now

    def _begin(self, given: dict[str, Any]) -> tcc.Gate:
        self._gate = tcc.Gate(self._artifact, given=given, account=self._account, clock=self._clock)
        return self._gate

    def play(self, line: str) -> tuple[str, str]:
        """Play one line: the decision that it shows, and the decision of the gate."""
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "wait":
            number, unit = rest.split()
            self._now += int(number) * _UNITS[unit]
            return "", ""
        if word == "session":
            self._begin(json.loads(rest) if rest else {})
            return "", ""
        gate = self._gate or self._begin({})
        if word == "finish":
            try:
                gate.finish()
            except tcc.Refused as refused:
                return rest, refused.code
            return rest, "allowed"
        arguments, rest = _value(rest) if rest.startswith("{") else ({}, rest)
        answer: Any = None
        if rest.startswith("->"):
            rest = rest.removeprefix("->").strip()
            outcome = next((one for one in _OUTCOMES if rest.startswith(one)), "")
            answer, rest = (
                (outcome, rest.removeprefix(outcome).strip()) if outcome else _value(rest)
            )
        try:
            with gate.call(word, arguments) as permit:
                if answer == "unknown":
                    permit.unknown("")
                elif answer in ("failed", "error"):
                    permit.failed("", answered=answer == "error")
                else:
                    permit.done(answer)
        except tcc.Refused as refused:
            return rest, refused.code
        return rest, "allowed"


def _value(text: str) -> tuple[Any, str]:
    value, end = json.JSONDecoder().raw_decode(text)
    return value, text[end:].strip()


def decisions(policy: str, transcript: str, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each line of a transcript, the decision that it shows, and the decision of the gate."""
    player = Player(policy, folder)
    for line in transcript.splitlines():
        if line and not line.startswith("#"):
            yield line, *player.play(line)
