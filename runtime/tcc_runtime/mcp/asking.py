"""Questions to the person at a client: the requests, the states, and the verdicts in answers.

`tcc gate --elicit ROLE` declares that the person at the client has the role.  A call that waits for
this role is answered with a form that has one flag.  Since 2026-07-28 the answer to the call is
`input_required`, and the client makes the call again.  In earlier versions the gate sends a request
to the client while the call waits.

Text: docs/ask.md; docs/mcp.md.  Cost: that of the messages.
"""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from blake3 import blake3

from tcc_runtime.gate.asking.questions import Pending, Verdict
from tcc_runtime.mcp import wire

KEY: Final = "approval"  # name of the request in a round
_CONTEXT: Final = "tcc.session/2 elicitation"
_STATE: Final = "tcc:ask:"
_OURS: Final = re.compile(_STATE + "([0-9a-f]{32}):([0-9a-f]{32})")


def _nobody(_: Pending) -> None:
    """Ignore a question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """The receivers of questions: the person at the client, and a callback.

    Attributes:
        roles: the roles of the person at the client.
        who: the name of this person, for the ledger.
        asked: called with each question that a call of this session waits for.
    """

    roles: frozenset[str] = frozenset()
    who: str = ""
    asked: Callable[[Pending], None] = _nobody


NOBODY: Final = Asking()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A verdict of the person at a client."""

    question: str
    verdict: Verdict


class Elicitation:
    """The questions that one session asks at its client.

    Args:
        session: the id of the session.
    """

    def __init__(self, session: str) -> None:
        self._key = blake3(os.urandom(32), derive_key_context=_CONTEXT).digest()
        self._session = session.encode()

    def state(self, question_id: str) -> str:
        """Return the state that a client sends back with an answer."""
        mac = blake3(question_id.encode() + self._session, key=self._key).hexdigest(16)
        return f"{_STATE}{question_id}:{mac}"

    def question_of(self, state: str) -> str | None:
        """Return the id of the question of a state; None: this session did not create the state."""
        found = _OURS.fullmatch(state)
        if found is None or not hmac.compare_digest(self.state(found[1]), state):
            return None
        return found[1]


def is_state(text: str) -> bool:
    """Return whether a state looks like one of :class:`Elicitation`."""
    return text.startswith(_STATE)


def form(question: Pending) -> dict[str, Any]:
    """Return the parameters of `elicitation/create` for a question."""
    lines = [f"{question.who}: approve this call of {question.tool}?"]
    if question.because:
        lines.append(question.because)
    lines += [question.text, *[f"{name}: {text}" for name, text in question.arguments.items()]]
    lines += [f"{name}: (not shown)" for name in question.hidden]
    return {
        "mode": "form",
        "message": "\n".join(lines),
        "requestedSchema": {
            "type": "object",
            "properties": {"approve": {"type": "boolean", "title": "Approve this call"}},
            "required": ["approve"],
        },
    }


def requests(question: Pending) -> wire.Member:
    """Return the member `inputRequests` of a round that asks the person at the client."""
    value = {KEY: {"method": "elicitation/create", "params": form(question)}}
    return wire.Member(value=value, text=wire.dumps(value))


def verdict_in(answer: object) -> Verdict | None:
    """Return the verdict in the result of an elicitation, or None.

    An accepted form with the flag true approves; with the flag false it denies.  Declining denies.
    In all other cases the question stays open.
    """
    if not isinstance(answer, Mapping):
        return None
    if answer.get("action") == "decline":
        return "denied"
    content = answer.get("content")
    if answer.get("action") != "accept" or not isinstance(content, Mapping):
        return None
    flag = content.get("approve")
    if flag is True:
        return "approved"
    return "denied" if flag is False else None


def plain_result(answer: wire.Response) -> Mapping[str, Any] | None:
    """Return the members of a client's answer; None if the answer is an error."""
    if answer.result is None:
        return None
    return {
        name: one.value if isinstance(one, wire.Member) else one
        for name, one in answer.result.items()
    }
