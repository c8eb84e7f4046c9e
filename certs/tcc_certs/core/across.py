"""Limits across sessions: what a call draws on an account, and what its record says of it.

Normative text: docs/spec/session.md, section 11.  In its own session such a limit holds as any
other; what other sessions have used only the account knows, so a ledger shows what was drawn, and
the account that it stands there (``validate --account``).  What is counted together is named by the
limit without its bound and its window: a grammar that changes these goes on with the same count.
Cost: a hash for each limit and call; a look-up for each key of the session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from blake3 import blake3

from tcc_certs.core.model import Core, PolicyMonitor
from tcc_certs.core.policies import Count, Total, Tree
from tcc_certs.errors import Code, ensure
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.ledger import Record
from tcc_certs.values.places import NONE, UNKNOWN, State, decimal_of, exact_number

_CONTEXT = "tcc.account/1.1 limit across sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossLimit:
    """A limit of a core that is held across sessions.

    Attributes:
        number: its place among the core's monitors; text: of it.
        name: of what is counted, 64 hex digits: the same for every bound and window.
        most: the bound; within: the window, ms, None: all that ever was.
    """

    number: int
    text: str
    name: str
    most: int | Fraction
    within: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """What a call draws: so much, of a limit, for these values of its `per`."""

    limit: AcrossLimit
    amount: int | Fraction
    key: tuple[State, ...]


def limits_across(core: Core) -> Mapping[int, AcrossLimit]:
    """The limits that are held across sessions, by their number among the statements of 1.2."""
    held = [(at, one) for at, one in enumerate(core.monitors) if isinstance(one, PolicyMonitor)]
    found = {}
    for number, (at, one) in enumerate(held):
        policy = one.policy
        if isinstance(policy, Count | Total) and policy.across:
            most = policy.value if isinstance(policy, Count) else exact_number(policy.value)
            found[number] = AcrossLimit(
                number=at,
                text=one.text,
                name=_name_of(core, policy),
                most=most,
                within=policy.within,
            )
    return found


def _name_of(core: Core, policy: Count | Total) -> str:
    """Tools are named, as their numbers are those of one grammar."""
    counted: dict[str, Json] = {"per": _plain(policy.per)}
    if isinstance(policy, Count):
        counted |= {"of": _set_of(core, policy.of), "where": _plain(policy.where)}
    else:
        counted |= {"of": core.tools[policy.tool].name, "param": policy.parameter}
    return blake3(encode(counted), derive_key_context=_CONTEXT).hexdigest()


def _set_of(core: Core, calls: Tree) -> Json:
    match calls:
        case ("calls", tool, bound):
            return ["calls", core.tools[tool].name, _plain(bound)]
        case ("or", sets):
            return ["or", [_set_of(core, one) for one in sets]]
        case ("but", one, other):
            return ["but", _set_of(core, one), _set_of(core, other)]
        case _:
            return ["any"]


def _plain(tree: Any) -> Json:
    return [_plain(part) for part in tree] if isinstance(tree, tuple) else tree


# Of each limit that a call is counted by: its number among the statements, how much, for whom.
Drawn: TypeAlias = "Sequence[tuple[int, int | Fraction, tuple[State, ...]]]"


def draws_of(limits: Mapping[int, AcrossLimit], drawn: Drawn) -> tuple[Draw, ...]:
    """What a call that its session allows draws, in the order of the core."""
    return tuple(
        [Draw(limit=limits[number], amount=amount, key=key) for number, amount, key in drawn]
    )


class DrawRecords:
    """What the calls of one session say that they drew.

    Attributes:
        account: the account that they name; None before the first.
        drawn: how many calls drew.
        last: what the last call draws.
    """

    def __init__(self, core: Core) -> None:
        self.limits = limits_across(core)
        self.account: str | None = None
        self.drawn = 0
        self.last: tuple[Draw, ...] = ()
        self._last_ms = 0
        self._keys: dict[tuple[int, tuple[State, ...]], str] = {}
        self._values: dict[tuple[int, str], tuple[State, ...]] = {}

    def call(self, drawn: Drawn, record: Record) -> None:
        """A call that its session allows, and what it draws.

        Raises:
            Rejected: S213 it says something else than what it draws, or than earlier ones said.
        """
        due = self.last = draws_of(self.limits, drawn)
        found = record.get("across")
        if not due or not isinstance(found, dict):
            expected = "what the call draws" if due else "no field, as it draws nothing"
            ensure(bool(due) == (found is not None), Code.SESSION_ACROSS, "across", expected, found)
            return
        account, at_ms = found["account"], found["at_ms"]
        known = self.account in (None, account)
        ensure(known, Code.SESSION_ACROSS, "across.account", str(self.account), account)
        self.account = str(account)
        later = isinstance(at_ms, int) and at_ms >= self._last_ms
        ensure(later, Code.SESSION_ACROSS, "across.at_ms", f"{self._last_ms} or later", at_ms)
        self._last_ms = at_ms if isinstance(at_ms, int) else 0
        listed = found["draws"]
        self._hold(due, listed if isinstance(listed, list) else [])
        self.drawn += 1

    def _hold(self, due: Sequence[Draw], listed: Sequence[Json]) -> None:
        place = "across.draws"
        lacks = any(part in (NONE, UNKNOWN) for draw in due for part in draw.key)
        ensure(not lacks, Code.SESSION_ACROSS, place, "for whom the call counts, known", "not")
        ensure(len(listed) == len(due), Code.SESSION_ACROSS, place, f"{len(due)}", len(listed))
        for draw, item in zip(due, listed, strict=True):
            said = item if isinstance(item, dict) else {}
            expected: dict[str, Json] = {
                "amount": decimal_of(draw.amount), "limit": draw.limit.number
            }  # fmt: skip
            mine = {name: said.get(name) for name in expected}
            ensure(mine == expected, Code.SESSION_ACROSS, place, expected, mine)
            left, most = exact_number(str(said["left"])), draw.limit.most - draw.amount
            room = f"0 .. {decimal_of(max(0, most))}"
            ensure(0 <= left <= most, Code.SESSION_ACROSS, f"{place}.left", room, said["left"])
            key = str(said["key"])
            one, other = (draw.limit.number, draw.key), (draw.limit.number, key)
            equal = self._keys.setdefault(one, key) == key
            equal = equal and self._values.setdefault(other, draw.key) == draw.key
            same = "the same exactly where the values are"
            ensure(equal, Code.SESSION_ACROSS, f"{place}.key", same, key)
