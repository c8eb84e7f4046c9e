"""Variants of a session: sessions that differ from it by a few plausible changes.

The comparison of two grammars looks among them for a session that one gate allows and the other
refuses.  The gates decide, so this module need not be complete or trusted.
Cost: at most `MOST` sessions, each of at most `MOST_CALLS` calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any, Final

from tcc_certs.policy import forms
from tcc_certs.policy.forms import Rule
from tcc_certs.values.declared import NumberType
from tcc_certs.values.fields import Field
from tcc_certs.values.places import exact_number
from tcc_runtime.exact.values import NOW_MS, Maker, Session, SessionCall, json_of, put

MOST: Final = 400
MOST_CALLS: Final = 2000
_PLAIN: Final = {f"x{number}": f"y{number}" for number in range(1, 5)}  # fresh texts of sessions


def variants(maker: Maker, session: Session, rule: Rule) -> Iterator[Session]:
    """Yield variants of a session whose last call is restricted or counted by a statement."""
    if not session.calls:
        return
    *before, last = session.calls
    session = replace(session, calls=(*before, _done(maker, last)))
    if rule.kind == "limit":
        yield from islice(_repeated(maker, session, rule), MOST)
    yield from islice(_changed(maker, session), MOST)


def _done(maker: Maker, call: SessionCall) -> SessionCall:
    """Return the call as done, with a plain answer, if it has no outcome; else the call itself."""
    if call.outcome:
        return call
    tool = maker.core.tool_of[call.tool]
    made: Any = {}
    for one in tool.answers:
        for state in maker.candidates(one)[:1]:
            made = put(made, one.steps, json_of(state, one.type, one.values))
    return replace(call, outcome="done", answer=made if tool.answers else None)


# More calls of a limit.


def _repeated(maker: Maker, session: Session, rule: Rule) -> Iterator[Session]:
    """Yield sessions with so many counted calls, or so large amounts, that a limit is exceeded."""
    match rule.most:
        case forms.Constant(("n", most)):
            bound = Fraction(most)
        case _:
            return
    *before, last = session.calls
    tool = maker.core.tool_of[last.tool]
    field = next((one for one in tool.arguments if one.name == rule.field), None)
    kept = {one for one in session.given.values() if isinstance(one, str)}
    spans = [0, *[span for span in (rule.within, *maker.spans) if span], *_doubled(maker)]
    for amounts in _splits(bound, field):
        calls = [last if one is None else _with_number(last, field, one) for one in amounts]
        for copies in ([0] * len(calls), [*[0] * (len(calls) - 1), 1], list(range(len(calls)))):
            for again in (False, True):
                for span in dict.fromkeys(spans):
                    made = _joined(before, calls, copies, again, kept)
                    if len(made) <= MOST_CALLS:
                        yield replace(session, calls=_spread(made, span))


def _doubled(maker: Maker) -> list[int]:
    return [2 * span for span in maker.spans]


def _joined(
    before: Sequence[SessionCall],
    calls: Sequence[SessionCall],
    copies: Sequence[int],
    again: bool,
    kept: Collection[str],
) -> list[SessionCall]:
    """Return the calls, each after the calls that it needs.

    Args:
        copies: for each call, the number of its set of fresh texts.
        again: whether the needed calls are repeated for each call.
        kept: texts that are not replaced by fresh ones.
    """
    made: list[SessionCall] = []
    seen: set[int] = set()
    for call, copy in zip(calls, copies, strict=True):
        if again or copy not in seen:
            made += [_fresh(one, copy, kept) for one in before]
        seen.add(copy)
        made.append(_fresh(call, copy, kept))
    return made


def _spread(calls: Sequence[SessionCall], span: int) -> tuple[SessionCall, ...]:
    """Return the calls at equal distances over a span that ends now."""
    count = max(len(calls) - 1, 1)
    return tuple([
        replace(call, at_ms=NOW_MS - span + span * at // count) for at, call in enumerate(calls)
    ])  # fmt: skip


def _splits(most: Fraction, field: Field | None) -> Iterator[list[Fraction | None]]:
    """Yield lists of amounts whose sum is a little larger than a bound; for a count, one call more
    than it.
    """
    if field is None:
        if most < MOST_CALLS:
            yield [None] * (int(most) + 1)
        return
    kind = field.type
    if not isinstance(kind, NumberType):
        return
    high = most + 1 if kind.high is None else Fraction(exact_number(kind.high))
    low = Fraction(0) if kind.low is None else Fraction(exact_number(kind.low))
    if high <= 0:
        return
    for total in [most + 1] if kind.whole else [most + 1, most + Fraction(1, 100)]:
        many = int(-(-total // high))
        for parts in dict.fromkeys((many, many + 1, many + 2, 2 * many, many + 4, 5 * many)):
            first = min(high, total)
            each = total / parts if not kind.whole else Fraction(total // parts)
            rest = total - each * (parts - 1)
            if parts <= MOST_CALLS and low <= each and rest <= high:
                yield [*[each] * (parts - 1), rest]
            left = total - first * (many - 1)
            if parts == many and many > 1 and low <= left:
                yield [*[first] * (many - 1), left]


def _with_number(call: SessionCall, field: Field | None, value: Fraction) -> SessionCall:
    if field is None:
        return call
    number = int(value) if value.denominator == 1 else float(value)
    return replace(call, arguments=put(dict(call.arguments), field.steps, number))


def _fresh(call: SessionCall, copy: int, kept: Collection[str] = ()) -> SessionCall:
    """Return the call with the fresh texts of a number; number 0 keeps the texts."""
    if not copy:
        return call
    suffix = str(copy) if copy > 1 else ""
    names = {one: other + suffix for one, other in _PLAIN.items() if one not in kept}
    return _renamed(call, names)


def _renamed(call: SessionCall, names: Mapping[Any, Any]) -> SessionCall:
    """Return the call with some values replaced in its arguments and its answer."""
    return replace(
        call, arguments=_replaced(dict(call.arguments), names), answer=_replaced(call.answer, names)
    )


def _replaced(value: Any, names: Mapping[Any, Any]) -> Any:
    if isinstance(value, dict):
        return {name: _replaced(one, names) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, names) for one in value]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    return names.get(value, value)


def together(one: Session, other: Session, most: Fraction) -> Session | None:
    """Return `most` copies of the last call of a session, followed by the calls of another session.

    None if the sessions cannot be combined.
    """
    if most >= MOST_CALLS or not one.calls or one.given != other.given:
        return None
    last = replace(one.calls[-1], outcome="done")
    return replace(one, calls=(*one.calls[:-1], *[last] * int(most), *other.calls))


# One change.


def _changed(maker: Maker, session: Session) -> Iterator[Session]:
    """Yield the session, and sessions with one change."""
    calls = session.calls
    yield session
    yield replace(session, calls=(*calls, calls[-1]))
    yield replace(session, calls=(*calls, *calls))
    for at, call in enumerate(calls[:-1]):
        for outcome in ("unknown", "failed", "answered"):
            may_fail = maker.core.tool_of[call.tool].errors_failed or outcome != "answered"
            if may_fail and call.outcome == "done":
                other = replace(call, outcome=outcome, answer=None)
                yield _with(session, at, other)
                yield _with(session, at, call, other)
        for other in _answers(maker, call):
            yield _with(session, at, other)
            yield _with(session, at, call, other)
            yield _with(session, at, other, call)
        yield replace(session, calls=(*calls[:at], *calls[at + 1 :]))
        yield _with(session, at, call, _fresh(call, 1))
        for span in maker.spans:
            for more in (1, 0, -1):
                early = [replace(one, at_ms=NOW_MS - span - more) for one in calls[: at + 1]]
                yield replace(session, calls=(*early, *calls[at + 1 :]))
    for call in _arguments(maker, calls[-1]):
        yield replace(session, calls=(*calls[:-1], call))
        names = _differences(calls[-1].arguments, call.arguments)
        yield replace(session, calls=tuple([_renamed(one, names) for one in calls]))


def _with(session: Session, at: int, *calls: SessionCall) -> Session:
    """Return the session with some calls in place of one."""
    return replace(session, calls=(*session.calls[:at], *calls, *session.calls[at + 1 :]))


def _answers(maker: Maker, call: SessionCall) -> Iterator[SessionCall]:
    """Yield the call with another value of one answer."""
    if call.outcome != "done" or not isinstance(call.answer, dict):
        return
    for one in maker.core.tool_of[call.tool].answers:
        for state in maker.candidates(one)[:8]:
            answer = put(call.answer, one.steps, json_of(state, one.type, one.values))
            if answer != call.answer:
                yield replace(call, answer=answer)


def _arguments(maker: Maker, call: SessionCall) -> Iterator[SessionCall]:
    """Yield the call with another value of one argument."""
    for one in maker.core.tool_of[call.tool].arguments:
        for state in maker.candidates(one)[:24]:
            arguments = put(dict(call.arguments), one.steps, json_of(state, one.type, one.values))
            if arguments != call.arguments:
                yield replace(call, arguments=arguments)


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[Any, Any]:
    """Return the new value of each changed argument by its old value."""
    return {
        old[name]: value
        for name, value in new.items()
        if name in old and old[name] != value and isinstance(old[name], str | int | float)
    }
