"""Records of plain calls, held to the bytes that they have to have: reopens ledgers quickly.

Most records of a long session say what follows from it anyway: its next call at its states, under
its next key, with its MAC, and beside that digests of open arguments; or that it was done, and what
was observed.  Such a record is written as the session would write it, and compared; one that has
these bytes has no finding (docs/spec/session.md, sections 3 to 5).  Any other record, and one that
the session would refuse, is left to the validator (:mod:`tcc_certs.session.validation`), whose
session has gone on by the quick ones as by its own.  tests/gate/test_expected.py holds both ways to
the same sessions and the same findings.
Cost: three keyed hashes for a call and its outcome, and their steps in the course.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Final, TypeAlias

from blake3 import blake3

from tcc_certs.core.model import Tool
from tcc_certs.formats.codec import Json, encode
from tcc_certs.session.machine import NOWHERE, Course, Held, Observed, Offer
from tcc_certs.session.monitors.keyed import Seen
from tcc_certs.session.records import open_name
from tcc_certs.session.replay import ReplayedSession
from tcc_certs.values.canonical import MAC_BYTES, CallKeys, record_key
from tcc_certs.values.places import State

OUTCOME: Final = b'{"kind":"outcome"'
_BEGINS: Final = b'{"call":'
_MAC_BYTES: Final = len(b',"mac":""') + 2 * MAC_BYTES
_MOST_ANSWERS: Final = 64
_NONE_OPEN: Final = b',"open":{}'
_NOTHING: Final[Mapping[str, Json]] = MappingProxyType({})
# A call, what monitors see of it, and what its record has of its open arguments.
_Call: TypeAlias = "tuple[Offer, Sequence[Seen], Mapping[str, Json]]"
_entries = re.compile(r'"([A-Za-z_][A-Za-z0-9_]*)":\{"digest":"([0-9a-f]{64})"\}').findall
_outcome = re.compile(
    rb'(\{"kind":"outcome"),"mac":"([0-9a-f]{32})"'
    rb'(,"ms":(?:0|[1-9][0-9]{0,14})(?:,"observed":(\{[^{}]*\}))?,"outcome":"done"'
    rb'(?:,"result":"[0-9a-f]{64}")?,"seq":([1-9][0-9]{0,14})\})'
).fullmatch


class ExpectedRecords:
    """The calls of one session whose records show no values, and their outcomes.

    Args:
        replayed: the validator's session, which goes on by each record that passes.
        key: of its digests.
    """

    def __init__(self, replayed: ReplayedSession, key: bytes) -> None:
        from hmac import compare_digest  # here: it loads OpenSSL, and a new session needs none

        self._same = compare_digest
        self._replayed = replayed
        self._keys = CallKeys(key, replayed.header.name)
        self._macs = blake3(key=record_key(key))
        machine, shown = replayed.machine, {at for at, _ in replayed.header.shown}
        plain = machine.statements is None and replayed.header.macs
        self._tools = {
            at: _Members(tool)
            for at, tool in enumerate(replayed.core.tools)
            if plain and at not in shown and at not in machine.monitors.added and _is_plain(tool)
        }
        self._offers = {
            _BEGINS + encode(offer.text): offer
            for at in self._tools
            for offer in machine.offers(at).values()
        }

    def call(self, body: bytes, previous: bytes, line: int) -> _Call | None:
        """Goes on by the record of a call, and says which; None: it is left to the validator.

        Args:
            body: the canonical bytes of record number `line`; previous: the hash before it.
        """
        replayed = self._replayed
        begins = body[: body.find(b'"', len(_BEGINS) + 1) + 1]
        offer = self._offers.get(begins)
        if (
            offer is None
            or replayed.open
            or replayed.ended
            or replayed.makers.executions is not None
        ):
            return None
        course, seq = replayed.course, replayed.tally.calls + 1
        states, key = replayed.machine.shown(course.held), self._keys.of(seq)
        shown = b"[%d]" % states[0] if len(states) == 1 else encode([*states])
        first = b'%b,"key":"%b","kind":"call"' % (begins, key.encode())
        last = b',"seq":%d,"states":%b}' % (seq, shown)
        middle = body[len(first) + _MAC_BYTES : -len(last)]
        opened = self._tools[offer.tool]
        given = opened.none if middle == _NONE_OPEN else opened.read(middle)
        rest = middle + last
        due = b'%b,"mac":"%b"%b' % (first, self._mac(previous, first + rest), rest)
        if given is None or not self._same(body, due):
            return None
        seen, number = replayed.machine.monitors.read(offer.tool, offer.values, given), int(key, 16)
        if number in replayed.keys or course.refuses(offer, seen) is not None:
            return None
        if given:
            replayed.arguments.hidden |= {opened.known[name] for name in given}
        replayed.keys.add(number)
        replayed.tally.calls = seq
        replayed.open[seq] = offer, line
        course.begin(seq, offer, seen)
        return offer, seen, given

    def outcome(self, body: bytes, previous: bytes) -> tuple[int, Observed] | None:
        """Goes on by the record of a call that was done; its number, and what was observed."""
        replayed, match = self._replayed, _outcome(body)
        if match is None or replayed.makers.executions is not None:
            return None
        first, mac, rest, observed, number = match.groups()
        seq = int(number)
        offer = replayed.open[seq][0] if seq in replayed.open else None
        if offer is None or offer.tool not in self._tools:
            return None
        answer = self._tools[offer.tool].answers.get(observed)
        if answer is None or not self._same(mac, self._mac(previous, first + rest)):
            return None
        replayed.tally.outcomes += 1
        replayed.settle(seq, offer, "done", answer)
        return seq, answer

    def _mac(self, previous: bytes, body: bytes) -> bytes:
        macs = self._macs
        macs.reset()
        macs.update(b"mac" + previous + body)
        return macs.hexdigest(MAC_BYTES).encode()


def _is_plain(tool: Tool) -> bool:
    """Whether no value of its calls stands in another, and there are few answers to observe."""
    few = prod([len(one.values) for one in tool.parameters if one.observed]) <= _MOST_ANSWERS
    places = [*(one.at for one in tool.parameters), *(one.at for one in tool.opened)]
    return few and not any(at is not None for at in places)


class _Members:
    """What records of calls of a tool have beside what follows.

    Attributes:
        known: how a header names each open argument; none: what there is where a record has none.
        answers: by the member of a record, what was observed.
    """

    def __init__(self, tool: Tool) -> None:
        self.known = {one.name: open_name(tool.name, one.name) for one in tool.opened}
        self._needed = {one.name for one in tool.opened if not one.optional}
        self.none: Mapping[str, Json] | None = None if self._needed else _NOTHING
        observed = [one for one in tool.parameters if one.observed]
        self.answers: dict[bytes | None, Observed] = {} if observed else {None: ()}
        for indices in product(*[range(len(one.values)) for one in observed]) if observed else ():
            pairs = zip(observed, indices, strict=True)
            self.answers[encode({one.name: one.values[at] for one, at in pairs})] = indices

    def read(self, member: bytes) -> Mapping[str, Json] | None:
        """The arguments that a record has; None where it has something else of them."""
        found = _entries(member.decode("latin-1"))
        text = ",".join([f'"{name}":{{"digest":"{digest}"}}' for name, digest in found])
        names = [name for name, _ in found]
        if member != b',"open":{%b}' % text.encode("latin-1") or names != sorted(set(names)):
            return None
        if not self._needed <= set(names) <= self.known.keys():
            return None
        return {name: {"digest": digest} for name, digest in found}


class WrittenHere(Course):
    """Stands for a session's course while the validator reads what that session wrote itself.

    The course has gone on by it already, and allowed it then.

    Args:
        states: what the record says of where it was made.
    """

    def __init__(self, states: object) -> None:
        listed = states if isinstance(states, list) else []
        self._places = tuple([((q,), ()) if q >= 0 else NOWHERE for q in listed])
        self.attributes: Mapping[str, State] = {}

    @property
    def held(self) -> Held:
        """Those."""
        return self._places

    def refuses(self, *_: object) -> None:
        """Nothing."""

    def begin(self, *_: object) -> None:
        """Not again."""

    def settle(self, *_: object, **__: object) -> None:
        """Not again."""

    def resolve(self, *_: object) -> None:
        """Not again."""

    def may_finish(self) -> bool:
        """It did."""
        return True
