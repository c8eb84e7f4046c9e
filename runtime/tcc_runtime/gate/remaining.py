"""The remainder of each limit of a session, and its open obligations.

Text: docs/gate.md.  A call whose outcome is unknown counts with the most that it may have taken.
Cost: linear in the draws and keys of limits.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import format_decimal
from tcc_certs.policy import forms
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.history import ANSWERED, FAILED
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import Evaluation
from tcc_certs.session.entries import canonical_bytes
from tcc_certs.values.places import NONE, UNKNOWN, State, decimal_of, exact_number
from tcc_runtime.account.windows import Across
from tcc_runtime.gate.session import Session

Amount: TypeAlias = "int | Decimal"
# With `per`: the remainder of each key, by the text of the key. None: the bound depends on the
# call, or the account cannot be read.
Remainder: TypeAlias = "Amount | dict[str, Amount] | None"

_PLACES: Final = 9  # decimal places of costs and epsilons


def remaining(session: Session, now_ms: int, across: Across | None) -> dict[str, Remainder]:
    """Return the remainder of each limit, by the text of its statement.

    Args:
        across: counts the limits across sessions, if the grammar has any.
    """
    found: dict[str, Remainder] = {}
    for text, (number, rule) in zip(
        session.policy.texts, enumerate(session.policy.decider.rules), strict=True
    ):
        if rule.kind == "total":
            found[text] = _left_of_total(session, rule)
        elif rule.kind == "limit":
            found[text] = _left_of_limit(session, number, rule, session.at(now_ms), across)
    return found


def _left_of_total(session: Session, rule: Rule) -> Amount:
    taken = session.policy.decider.taken(rule.what, session.course.history)
    left = exact_number(rule.total) - taken
    if rule.what in ("cost", "epsilon"):
        return Decimal(format_decimal(int(left * 10**_PLACES), _PLACES))
    return int(left)


def _left_of_limit(
    session: Session, number: int, rule: Rule, now_ms: int, across: Across | None
) -> Remainder:
    if rule.most is None or any(form == forms.Element(0) for form in walk(rule.most)):
        return None
    history = session.course.history
    most = _least(Evaluation(history, None, now_ms).term(rule.most))
    if most is None:
        return None
    since = None if rule.within is None else now_ms - rule.within
    sums: dict[tuple[State, ...], Any] = {}
    unknown: Any = 0
    for draw in history.draws(number, None, since, rule.across):
        if draw.call.outcome in (FAILED, ANSWERED):
            continue
        if draw.key is None:
            unknown += draw.amount
        else:
            sums[draw.key] = sums.get(draw.key, 0) + draw.amount
    if not any(form == forms.Element(0) for term in rule.per for form in walk(term)):
        key = tuple([Evaluation(history, None, now_ms).key(term) for term in rule.per])
        if UNKNOWN not in key:
            sums.setdefault(key, 0)  # this key does not depend on the call, so every call has it
    taken = [unknown + amount for amount in sums.values()]
    if rule.across and across is not None:
        try:
            taken = across.used(number, list(sums), now_ms) or taken
        except Rejected:
            return None  # the account cannot be read
    left = {key: _amount(most - amount) for key, amount in zip(sums, taken, strict=True)}
    return {key_text(key): amount for key, amount in left.items()} if rule.per else left[()]


def _least(state: State) -> Any:
    """Return the least number that a bound may be; None if any number is possible."""
    if state[0] == "d":
        state = state if state[1].value is None else state[1].value
    if state[0] == "between":
        return state[1][1]
    return state[1] if state[0] == "n" else None


def _amount(number: int | Fraction) -> Amount:
    return number if isinstance(number, int) else Decimal(decimal_of(number))


def key_text(key: tuple[State, ...]) -> str:
    """Return the values of a key as a text, with digests for values that the ledger hides."""
    return ", ".join(map(_value_text, key))


def _value_text(state: State) -> str:
    if state[0] == "d":
        digested = state[1]
        return str(digested.digest) if digested.value is None else _value_text(digested.value)
    return "" if state == NONE else canonical_bytes(state)[1].decode()


def owed(session: Session, now_ms: int) -> list[dict[str, Any]]:
    """Return the obligations that may be open.

    Each has `text`, `because`, `call` (the number of the call that opened it), and `due_ms` if it
    has a deadline.
    """
    core, texts = session.policy.core, session.policy.texts
    found: list[dict[str, Any]] = []
    for debt in session.course.debts(session.at(now_ms)):
        item = {
            "text": texts[debt.statement],
            "because": core.statements[debt.statement].because,
            "call": debt.call.number + 1,
        }
        found.append(item if debt.due_ms is None else {**item, "due_ms": debt.due_ms})
    return found
