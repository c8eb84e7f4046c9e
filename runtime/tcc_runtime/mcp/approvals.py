"""Questions to persons over HTTP: the page, the list, and verdicts.

    GET  /approvals         the page; with `Accept: application/json` the open questions
    POST /approvals/ID      a verdict: {"verdict": "approved" | "denied", "reason": ..}

The scope of a token has `tcc:approve:ROLE` for each role of its subject.  A principal that made the
call may not decide, even with the scope.  If the gate does not know who made it, the gate takes no
verdict over HTTP, and a person uses the command line.  The page has no secrets: it asks for a
token, and keeps it in memory.

Text: docs/ask.md; docs/http.md.
Cost: a list asks the live sessions, and reads the other ledgers of the store that have changed.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from tcc_certs.errors import Rejected
from tcc_certs.session.files import files_of
from tcc_runtime.errors import LedgerError, ResumeError
from tcc_runtime.gate.asking import places
from tcc_runtime.gate.asking.questions import Pending, Verdict, VerdictError
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.session import records
from tcc_runtime.mcp import wire
from tcc_runtime.mcp.tokens import Principal

if TYPE_CHECKING:
    from tcc_runtime.gate.gate import Gate
    from tcc_runtime.gate.store import Sessions

MOST_BODY: Final = 1 << 14
_SCOPE: Final = "tcc:approve:"
# characters of a scope (RFC 6749, section 3.3), without %
_PLAIN: Final = "!#$&'()*+,-./:;<=>?@[]^_`{|}~"
_ID: Final = re.compile("[0-9a-f]{32}")
_MOST_ASKERS: Final = 1 << 17
_MOST_LISTED: Final = 1000
_SECONDS: Final = 15.0  # the longest wait for a ledger
_STATUS: Final[Mapping[str, int]] = {"unknown": 404, "decided": 409, "expired": 410}


class NoVerdict(Exception):
    """A verdict is not recorded.

    Attributes:
        status: the HTTP status of the answer.  The text of the exception is the reason.
    """

    def __init__(self, status: int, said: str) -> None:
        self.status = status
        super().__init__(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A verdict that a client sends."""

    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A question, and the principal of its session.

    Attributes:
        session: the id of the session.
        gate: the gate of the session; None: the session is not live in this process.
        principal: the name in the store of the session's principal; None: it has none.
    """

    question: Pending
    session: str
    gate: Gate | None
    principal: str | None


def scope_of(role: str) -> str:
    """Return the part of a token's scope that lets its subject decide for a role."""
    return _SCOPE + quote(role, safe=_PLAIN)


def scopes_of(principal: Principal) -> frozenset[str]:
    """Return the parts of a token's scope that name roles."""
    scope = principal.claims.get("scope")
    parts = scope.split(" ") if isinstance(scope, str) else ()
    return frozenset(part for part in parts if part.startswith(_SCOPE))


def told_in(body: bytes) -> Told:
    """Return the verdict in the body of a request.

    Raises:
        NoVerdict: 400: the body has another form.
    """
    try:
        found = wire.read_json(body)
    except wire.MalformedMessage:
        found = None
    if not isinstance(found, dict) or not found.keys() <= {"verdict", "reason"}:
        raise NoVerdict(400, 'send {"verdict": "approved" or "denied", "reason": TEXT}')
    verdict, reason = found.get("verdict"), found.get("reason", "")
    if verdict not in ("approved", "denied"):
        raise NoVerdict(400, 'the verdict is "approved" or "denied"')
    if not isinstance(reason, str):
        raise NoVerdict(400, "the reason is a text")
    return Told(verdict="approved" if verdict == "approved" else "denied", reason=reason)


class Desk:
    """The open questions of a store, and the verdicts on them.

    Args:
        store: the store of the sessions.
    """

    def __init__(self, store: Sessions) -> None:
        self._store = store
        self._live: dict[str, Gate] = {}
        # The principals that made the call of a question, if this process asked it.
        self._askers: dict[str, set[Principal | None]] = {}
        self._read: dict[Path, tuple[object, places.Asked]] = {}

    def asked(self, question: Pending, gate: Gate, principal: Principal | None) -> None:
        """Note that a call of a principal waits for a question."""
        self._live[gate.session_id] = gate
        if question.is_new:
            self._askers[question.id] = {principal}
            if len(self._askers) > _MOST_ASKERS:
                del self._askers[next(iter(self._askers))]
        elif question.id in self._askers:
            self._askers[question.id].add(principal)

    def close(self, gate: Gate) -> None:
        """Forget a gate that is closed; its questions are read from the ledger."""
        if self._live.get(gate.session_id) is gate:
            del self._live[gate.session_id]

    # The list.

    async def listed(self, principal: Principal) -> list[dict[str, Any]]:
        """Return the open questions that a principal may decide; the oldest 1,000 of them.

        Raises:
            NoVerdict: 403: the scope of the token names no role.
        """
        scopes = scopes_of(principal)
        if not scopes:
            raise NoVerdict(403, f"the scope of the token has no {_SCOPE}ROLE")
        known = await asyncio.to_thread(self._known)
        known = [
            one
            for one in known
            if scope_of(one.question.who) in scopes and not self._own(one, principal)
        ]
        known.sort(key=lambda one: (one.question.asked_ms, one.question.id))
        return [{**one.question.to_json(), "session": one.session} for one in known[:_MOST_LISTED]]

    def _known(self) -> list[_Known]:
        """Return all open questions."""
        found, live = [], dict(self._live)
        for identity, gate in live.items():
            found += [
                _Known(question=one, session=identity, gate=gate, principal=gate.principal)
                for one in gate.pending
            ]
        now = records.now_ms()
        for identity in self._store.ids():
            asked = None if identity in live else self._questions(identity)
            for one in () if asked is None else asked.open(now):
                found.append(_in_ledger(one, identity, asked))
        return found

    def _questions(self, identity: str) -> places.Asked | None:
        """Return the questions of a ledger; None: it cannot be read.

        A ledger that has not changed is not read again.
        """
        place = places.of_store(self._store, identity)
        try:
            found = [path.stat() for path in files_of(place.ledger)]
            stamp = [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]
            known = self._read.get(place.ledger)
            if known is None or known[0] != stamp:
                known = self._read[place.ledger] = stamp, places.questions_in(place)
        except (Rejected, LedgerError, ResumeError, OSError):
            return None
        return known[1]

    # Verdicts.

    async def decide(self, question_id: str, principal: Principal, told: Told) -> None:
        """Record the verdict of a principal.

        Raises:
            NoVerdict: 403: the token lacks the role, the principal made the call, or the gate does
                not know who made it.  404: no question has the id.  409: the question has a
                verdict.  410: the question has expired.  503: the ledger is not writable now.
        """
        scopes = scopes_of(principal)
        if not scopes:
            raise NoVerdict(403, f"the scope of the token has no {_SCOPE}ROLE")
        try:
            async with asyncio.timeout(_SECONDS):
                await asyncio.to_thread(self._decide, question_id, principal, scopes, told)
        except TimeoutError:
            raise NoVerdict(503, "the ledger is in use: look whether the verdict counts") from None

    def _decide(
        self, question_id: str, principal: Principal, scopes: frozenset[str], told: Told
    ) -> None:
        known = self._find(question_id)
        if scope_of(known.question.who) not in scopes:
            said = f"the token does not have the scope {scope_of(known.question.who)}"
            raise NoVerdict(403, said)
        if self._own(known, principal):
            said = (
                "this principal made the call, or the gate does not know who made it:"
                " use `tcc session approve`"
            )
            raise NoVerdict(403, said)
        try:
            self._record(known, told, principal.subject)
        except VerdictError as error:
            raise NoVerdict(_STATUS[error.why], str(error)) from None
        except ValueError as error:
            raise NoVerdict(400, str(error)) from None
        except (LedgerError, ResumeError, Rejected, Refused) as error:
            raise NoVerdict(503, str(error)) from None

    def _record(self, known: _Known, told: Told, who: str) -> None:
        question_id, gate = known.question.id, known.gate
        if gate is None:
            place = places.of_store(self._store, known.session)
            places.decide([place], question_id, told.verdict, who, told.reason)
        elif told.verdict == "approved":
            gate.approve(question_id, who=who)
        else:
            gate.deny(question_id, who=who, reason=told.reason)

    def _find(self, question_id: str) -> _Known:
        """Return a question, also one that is decided or has expired.

        Raises:
            NoVerdict: 404: no question has the id.
        """
        if _ID.fullmatch(question_id):
            for one in self._known():
                if one.question.id == question_id:
                    return one
            for identity in self._store.ids():
                asked = self._questions(identity)
                found = None if asked is None else asked.asked.get(question_id)
                if found is not None:
                    return _in_ledger(found, identity, asked)
        raise NoVerdict(404, "no session has an open question with this id")

    def _own(self, known: _Known, principal: Principal) -> bool:
        """Return whether a principal made the call itself, or may have made it."""
        if known.principal is not None:  # only its principal can call in this session
            name = self._store.name_of((principal.issuer, principal.subject))
            return known.principal == name
        askers = self._askers.get(known.question.id)
        return askers is None or principal in askers


def _in_ledger(listed: places.Listed, identity: str, asked: places.Asked | None) -> _Known:
    """Return a question of a session that is not live here."""
    principal = None if asked is None else asked.first.get("principal")
    name = principal if isinstance(principal, str) else None
    return _Known(question=listed.pending, session=identity, gate=None, principal=name)


# The page.


@cache
def page() -> tuple[bytes, str]:
    """Return the page, and its content security policy."""
    text = (files("tcc_runtime.mcp") / "approvals.html").read_text("utf-8")
    parts = {
        kind: _digest(text.partition(f"<{kind}>")[2].partition(f"</{kind}>")[0])
        for kind in ("style", "script")
    }
    policy = (
        f"default-src 'none'; style-src 'sha256-{parts['style']}'; "
        f"script-src 'sha256-{parts['script']}'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )
    return text.encode(), policy


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def dumps(value: object) -> bytes:
    """Return the JSON of an answer."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
