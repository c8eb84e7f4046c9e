"""What a transcript says of states: against a replay of each prefix of the ledger."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest

import tcc
from tcc.pages.transcript import Teller
from tcc_certs.errors import Rejected
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import check
from tcc_certs.session import validate
from tcc_certs.session.replay import ReplayedSession
from tcc_certs.session.validation import SessionReplay, _read, machine_of
from tests.gate.grammars import artifact, bytes_of

TOGETHER = """grammar together version "1"

tool look(p: text) gives (r: yes | no) { parallel }
tool note(p: text) { parallel }
tool pay(n: 1 | 2, p: text)

plan = (look | note | pay){0,16}

limit count(pay) <= 2
"""
ALONE = """grammar alone version "1"

tool look(p: text) gives (r: yes | no)
tool pay(n: 1 | 2, p: text)

plan = (look | pay){0,12}

before pay(n = 2) require no look(r = "no")
"""


def drawn(text: str, rng: random.Random, path: Path) -> list[bytes]:
    """The lines of a session with unknown outcomes, some of them resolved."""
    with tcc.Gate(artifact(text), ledger=path, durable=False) as gate:
        under_way: list[tcc.Permit] = []
        for _ in range(14):
            with suppress(tcc.Refused, ValueError):
                if under_way and rng.random() < 0.5:
                    permit = under_way.pop(rng.randrange(len(under_way)))
                    told = rng.choice(["yes", "no", "else", None])
                    if told is None:
                        permit.unknown()
                    else:
                        permit.done({"r": told})
                    permit.__exit__(None, None, None)
                elif rng.random() < 0.2:
                    unknown = [one.seq for one in gate.history if one.outcome == "unknown"]
                    gate.resolve(rng.choice(unknown or [0]), "failed")
                elif not under_way or text is TOGETHER:
                    tool = rng.choice(["look", "pay"] if not under_way else ["look", "note"])
                    more = {"n": rng.choice([1, 2])} if tool == "pay" else {}
                    permit = gate.call(tool, {"p": "x", **more})
                    permit.__enter__()
                    under_way.append(permit)
        for permit in under_way:
            permit.__exit__(None, None, None)
    return path.read_bytes().splitlines(keepends=True)


def after(text: str, lines: list[bytes]) -> ReplayedSession:
    """The session after these lines, gone through from the start."""
    checked = check(bytes_of(artifact(text)))
    replay = SessionReplay(checked, machine_of(checked), None)
    with suppress(Rejected):  # it has no end
        _read(replay, LedgerReader(lines), None, last=True)
    assert replay.session is not None
    return replay.session


def shown(text: str, lines: list[bytes], *, first: bool) -> list[int]:
    """The states after these lines; `first`: before the first call that is under way."""
    session = after(text, lines)
    for _, line in session.open.values() if first else ():
        return shown(text, lines[: line - 1], first=False)
    return session.machine.shown(session.course.held)


@pytest.mark.parametrize("text", [TOGETHER, ALONE])
@pytest.mark.parametrize("seed", range(3))
def test_states_of_events_are_those_of_the_prefixes(text: str, seed: int, tmp_path: Path) -> None:
    lines = drawn(text, random.Random(seed), tmp_path / "l")
    whole = check(bytes_of(artifact(text)))
    for many in range(1, len(lines) + 1):
        teller, some = Teller(), lines[:many]
        begun: dict[int, list[int]] = {}
        ended: list[list[int]] = []

        def tell(
            record: object,
            session: ReplayedSession,
            teller: Teller = teller,
            ended: list[list[int]] = ended,
            begun: dict[int, list[int]] = begun,
        ) -> None:
            teller.tell(record, session)  # type: ignore[arg-type]
            line = len(ended) + 1
            ended.append(shown(text, lines[:line], first=True))
            if session.open and session.tally.calls not in begun:
                begun[session.tally.calls] = shown(text, lines[: line - 1], first=False)

        assert validate(b"".join(some), whole, tell=tell).word == "INCOMPLETE"
        told = teller.transcript(artifact(text))
        assert list(told.states) == shown(text, some, first=False)
        calls = [event for event in told.events if event.kind == "call"]
        assert {event.seq: list(event.before) for event in calls} == begun
        whole_ones = [event for event in told.events if event.outcome != "open"]
        assert all(list(event.after) in ended for event in whole_ones)
