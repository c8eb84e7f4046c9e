"""Sessions beyond a limit: the last calls of a short session are made again and again.

Calls that are refused again, such as a second voucher for one booking, are made with another value
in place of one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tcc_runtime.exact.repairs import replayed
from tcc_runtime.exact.values import Maker, Session, SessionCall, done

MAX_CALLS = 200  # of a session
MAX_AGAIN = 8  # calls that are made again, and texts that are tried

_Shape: TypeAlias = "tuple[int, str | None]"  # how many calls are made again, and a text of them


def lengthened(maker: Maker, session: Session, tick: Callable[[], None]) -> Session | None:
    """Repeat the last calls of a session until it breaks the question; None: it never did.

    Args:
        session: the gate has only decided its last call.  Here this call is done.
    """
    *before, last = session.calls
    session = replace(session, calls=(*before, done(maker, last)))
    shape: _Shape | None = None
    while len(session.calls) < MAX_CALLS:
        shapes = [] if shape is None else [shape]
        for many, text in (*shapes, *_shapes(session.calls)):
            tick()
            fresh = None if text is None else _fresh(text, session.calls)
            more = [_renamed(call, text, fresh) for call in session.calls[-many:]]
            longer = replace(session, calls=(*session.calls, *more))
            found = replayed(maker, "statement", longer)
            if found.breaks is not None:
                return longer
            if found.refused is None:
                session, shape = longer, (many, fresh)
                break
        else:
            return None
    return None


def _shapes(calls: Sequence[SessionCall]) -> Iterator[_Shape]:
    for many in range(1, min(len(calls), MAX_AGAIN) + 1):
        yield many, None
        texts = dict.fromkeys([one for call in calls[-many:] for one in _texts(call.arguments)])
        for text in list(texts)[:MAX_AGAIN]:
            yield many, text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _renamed(call: SessionCall, text: str | None, fresh: str | None) -> SessionCall:
    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: renamed(one) for name, one in value.items()}
        if isinstance(value, list):
            return [renamed(one) for one in value]
        return fresh if value == text else value

    if text is None:
        return call
    return replace(call, arguments=renamed(dict(call.arguments)), answer=renamed(call.answer))


def _fresh(text: str, calls: Sequence[SessionCall]) -> str:
    """Return a text of the same form that no call has: the next one in the order of numbers."""
    known = {one for call in calls for one in _texts([call.arguments, call.answer])}
    for _ in range(len(known) + 1):
        text = _next(text)
        if text not in known:
            break
    return text


def _next(text: str) -> str:
    """The same text with its last letter or digit moved on, as an odometer does."""
    chars = list(text)
    for at in reversed(range(len(chars))):
        for first, last in ("09", "az", "AZ"):
            if first <= chars[at] <= last:
                if chars[at] != last:
                    chars[at] = chr(ord(chars[at]) + 1)
                    return "".join(chars)
                chars[at] = first
    return "".join(chars)


__all__ = ["lengthened"]
