"""Limits across sessions: the draws of calls on an account, and their records.

Normative text: docs/spec/session.md, section 11.  A ledger shows the draws of its own session.
Only the account knows the uses of other sessions (``validate --account``).

The *name* of a count depends on the restricted tools, the filter, `per` and the field.  It does not
depend on the bound or the window, so a grammar that changes these continues the count.

Cost: one hash for each limit; one look-up for each draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from blake3 import blake3

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.ledger import Record
from tcc_certs.policy import nodes
from tcc_certs.policy.core import Core
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.nodes import Definition, Node
from tcc_certs.values.places import State, decimal_of, exact_number

_CONTEXT = "tcc.account/2 limit across sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossLimit:
    """A limit of a core that holds across sessions.

    Attributes:
        number: the number of the statement.
        text: its canonical text.
        name: the name of the count, 64 hex digits.
        within: the window in milliseconds; None: all uses count.
    """

    number: int
    text: str
    name: str
    within: int | None


def limits_across(core: Core, rules: Sequence[Rule]) -> Mapping[int, AcrossLimit]:
    """Return the limits that hold across sessions, by the number of the statement."""
    found = {}
    for number, (statement, rule) in enumerate(zip(core.statements, rules, strict=True)):
        if rule.across and isinstance(statement, nodes.Limit):
            found[number] = AcrossLimit(
                number=number,
                text=nodes.statement_text(statement),
                name=_name_of(core, statement, rule),
                within=rule.within,
            )
    return found


def _name_of(core: Core, limit: nodes.Limit, rule: Rule) -> str:
    tools = sorted(rule.tools or ())
    fields = {field.name for tool in tools for field in core.tool_of[tool].arguments}
    lets = {let.name: let for let in core.lets if let.name not in fields}
    counted: dict[str, Json] = {
        "if": [nodes.json_of(_opened(node, lets)) for node in limit.where],
        "per": [nodes.json_of(_opened(node, lets)) for node in limit.per],
        "tools": [*tools],
    }
    if limit.field is not None:
        counted["field"] = limit.field
    return blake3(encode(counted), derive_key_context=_CONTEXT).hexdigest()


def _opened(node: Node, lets: Mapping[str, Definition]) -> Node:
    """Return a node with the bodies of definitions in place of their names."""
    arguments: tuple[Node, ...] = ()
    name = node
    if isinstance(node, nodes.Where):
        name, arguments = node.of, tuple([_opened(part, lets) for part in node.conditions])
    if isinstance(name, nodes.Word):
        let = lets.get(name.name)
        if let is not None and len(let.parameters) == len(arguments):
            bound = dict(zip(let.parameters, arguments, strict=True))
            rest = {other: one for other, one in lets.items() if other != let.name}
            return _with(_opened(let.body, rest), bound) if bound else _opened(let.body, rest)
    return nodes.with_parts(node, [_opened(part, lets) for part in nodes.parts_of(node)])


def _with(node: Node, bound: Mapping[str, Node]) -> Node:
    """Return a body with arguments in place of its parameters."""
    if isinstance(node, nodes.Word) and node.name in bound:
        return bound[node.name]
    return nodes.with_parts(node, [_with(part, bound) for part in nodes.parts_of(node)])


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossDraw:
    """The draw of an allowed call on the account.

    Attributes:
        amount: the amount of this call.
        bound: the bound of this decision.
        key: the states of the `per` terms; None if any of them is unknown.
    """

    limit: AcrossLimit
    amount: int | Fraction
    bound: int | Fraction
    key: tuple[State, ...] | None


class DrawRecords:
    """The draws of the calls of one session.

    Attributes:
        account: the account that the calls name; None before the first draw.
        drawn: the number of calls that drew.
        last: the draws of the last call.
    """

    def __init__(self) -> None:
        self.account: str | None = None
        self.drawn = 0
        self.last: Sequence[AcrossDraw] = ()
        self._last_ms = 0
        self._names: dict[tuple[int, tuple[State, ...]], str] = {}
        self._keys: dict[tuple[int, str], tuple[State, ...]] = {}

    def call(self, draws: Sequence[AcrossDraw], record: Record) -> None:
        """Check the member `across` of an allowed call.

        Args:
            draws: in the order of the statements.

        Raises:
            Rejected: S213: the member differs from the draws, or contradicts earlier records.
        """
        self.last = draws
        found = record.get("across")
        if not draws or not isinstance(found, dict):
            expected = "what the call draws" if draws else "no member: the call draws nothing"
            present = found is not None
            ensure(bool(draws) == present, Code.SESSION_ACROSS, "across", expected, found)
            return
        account, at_ms = str(found["account"]), found["at_ms"]
        known = self.account in (None, account)
        ensure(known, Code.SESSION_ACROSS, "across.account", str(self.account), account)
        self.account = account
        if not isinstance(at_ms, int) or at_ms < self._last_ms:
            expected = f"{self._last_ms} or later"
            raise Rejected(Code.SESSION_ACROSS, "across.at_ms", expected, at_ms)
        self._last_ms = at_ms
        listed = found["draws"]
        self._check(draws, listed if isinstance(listed, list) else [])
        self.drawn += 1

    def carry(self, record: Record) -> None:
        """Store the account and the time of a call that another artifact decided."""
        found = record.get("across")
        if isinstance(found, dict):
            self.account, self._last_ms = str(found["account"]), int(str(found["at_ms"]))
            self.drawn += 1

    def _check(self, draws: Sequence[AcrossDraw], listed: Sequence[Json]) -> None:
        place = "across.draws"
        expected = f"{len(draws)} draws"
        ensure(len(listed) == len(draws), Code.SESSION_ACROSS, place, expected, len(listed))
        for draw, item in zip(draws, listed, strict=True):
            members = item if isinstance(item, dict) else {}
            due: dict[str, Json] = {
                "amount": decimal_of(draw.amount), "bound": decimal_of(draw.bound),
                "limit": draw.limit.number,
            }  # fmt: skip
            stated = {name: members.get(name) for name in due}
            ensure(stated == due, Code.SESSION_ACROSS, place, due, stated)
            left, most = exact_number(str(members["left"])), draw.bound - draw.amount
            room = f"0 .. {decimal_of(max(0, most))}"
            ensure(0 <= left <= most, Code.SESSION_ACROSS, f"{place}.left", room, members["left"])
            self._check_key(draw, members.get("key"))

    def _check_key(self, draw: AcrossDraw, name: object) -> None:
        place = "across.draws.key"
        if draw.key is None or not isinstance(name, str):
            expected = "no member: a value of `per` is unknown" if draw.key is None else "a key"
            missing = draw.key is None and name is None
            ensure(missing, Code.SESSION_ACROSS, place, expected, name)
            return
        number = draw.limit.number
        equal = self._names.setdefault((number, draw.key), name) == name
        equal = equal and self._keys.setdefault((number, name), draw.key) == draw.key
        expected = "equal keys exactly for equal values of `per`"
        ensure(equal, Code.SESSION_ACROSS, place, expected, name)
