"""Fast rendering of the frequent records of a run's ledger, with members sorted by name.

The records are nodes, steps, and those of questions: `requeue`, `budget`, `refine`, and the part of
`close` about all questions.  Format: docs/spec/ledger.md, sections 3 and 11.  A test compares the
lines with the bytes of the canonical writer.
Cost: formatting a few numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring

from tcc_certs.formats.codec import Json, encode, format_decimal
from tcc_certs.formats.ledger import digits_q64, format_q32, format_q64
from tcc_certs.policy.atoms import atom_document
from tcc_certs.privacy.accountant import PLD
from tcc_certs.privacy.spending import Taken
from tcc_certs.replay.amounts import SpentAmounts, cap_fields, spent_fields
from tcc_certs.replay.asking.controller import Choice, margin_fields, slack
from tcc_runtime.account.amounts import AccountAmounts, Caps, Remainder
from tcc_runtime.adapters.adapter import adapter_of
from tcc_runtime.guards import SearchGuard
from tcc_runtime.item import ID, LEFT, ORDER, Item, call_of, step_of
from tcc_runtime.pricing.drawing import Wish
from tcc_runtime.pricing.refine import AnsweredAsk
from tcc_runtime.settings.modes import Terms
from tcc_runtime.settings.settings import Settings
from tcc_runtime.states import WeightedCall

_REPR_BYTES = 48
_MOST_CONTEXTS = _MOST_NUMBERS = 1 << 12
VARIANT = {f"{digit:x}": "-" + "89ab"[digit & 3] for digit in range(16)}
# 10^20 / 2^64 = 5^20 / 2^44. Only a multiple of 2^43 may be halfway between two texts.
DROP = 44
FIVES = 5**20
HALF = 1 << DROP - 1
TIE = HALF - 1
ONE, MINUS_ONE = 1 << 64, -1 << 64  # numbers between these two may need a leading 0


class Marks:
    """Remembers whether the claim was lowered: only the first record that lowers it has the
    member.
    """

    __slots__ = ("lowered",)

    def __init__(self, lowered: bool = False) -> None:
        self.lowered = lowered

    def guards(self, names: list[SearchGuard], lowers: bool) -> dict[str, Json]:
        """Return the members `guards` and `claim_type` of a record.

        Args:
            names: the guards that fired.
            lowers: whether they lower the claim.
        """
        found: dict[str, Json] = {}
        if names:
            found["guards"] = sorted({name.value for name in names})
        if lowers and not self.lowered:
            self.lowered = True
            found["claim_type"] = "NoCert"
        return found


class Contexts(dict[tuple[WeightedCall, ...], "Following"]):
    """The texts `ctx_repr`, with quotes, by all calls of a prefix except the last, then by the last
    call.

    It is emptied at 4,096 entries.
    """

    __slots__ = ("_size",)

    def __init__(self) -> None:
        self._size = 0

    def __missing__(self, before: tuple[WeightedCall, ...]) -> Following:
        self.grow()
        found = self[before] = Following(self, before)
        return found

    def grow(self) -> None:
        """Make room for another entry, here or in an inner table."""
        self._size += 1
        if self._size > _MOST_CONTEXTS:
            self._size = 1
            self.clear()

    def of(self, calls: tuple[WeightedCall, ...]) -> str:
        """Return `ctx_repr` of a prefix with these last calls."""
        return self[calls[:-1]][calls[-1]] if calls else '""'


class Following(dict[WeightedCall, str]):
    """The texts `ctx_repr` of the prefixes that extend one prefix, by the next call."""

    __slots__ = ("_before", "_contexts")

    def __init__(self, contexts: Contexts, before: tuple[WeightedCall, ...]) -> None:
        self._contexts = contexts
        self._before = before

    def __missing__(self, call: WeightedCall) -> str:
        self._contexts.grow()
        text = " ".join([call.text for call in (*self._before, call)])
        found = self[call] = encode_basestring(_cut(text.encode()))
        return found


def q64_text(value: int) -> str:
    """Return the text of a Q64.64 number.  The definition is
    tcc_certs.formats.ledger.format_q64.
    """
    digits = str(value * FIVES + HALF >> DROP)
    if ONE > value > MINUS_ONE or not value & TIE:
        digits = rare_digits(digits, value)
    return f"{digits[:-20]}.{digits[-20:]}"


def rare_digits(digits: str, value: int) -> str:
    """Return the digits of a number that is small, or may be halfway between two texts."""
    return digits.zfill(21 + (value < 0)) if value & TIE else digits_q64(value)


class KeyTexts(dict[int, str]):
    """Q64.64 texts of keys without noise, which many nodes share, by minus the key."""

    def __missing__(self, order: int) -> str:
        if len(self) >= _MOST_NUMBERS:
            self.clear()
        found = self[order] = format_q64(-order)
        return found


key_texts = KeyTexts()


def stamp_of(started_ms: int) -> str:
    """Return the start of every node_id of a run, from the run's start in ms."""
    time = f"{started_ms:012x}"
    return f"{time[:8]}-{time[8:]}-7"


def node_id(stamp: str, text: str) -> str:
    """Return the UUIDv7 of a digest in hex.  The definition is tcc_certs.race.digest.uuid7."""
    return f"{stamp}{text[13:16]}{VARIANT[text[16]]}{text[17:20]}-{text[20:32]}"


def member(name: str, members: Mapping[str, Json], *, before: bool = False) -> str:
    """Return a member as text with a comma after it (or `before` it); '' if `members` lacks it."""
    if name not in members:
        return ""
    text = f'"{name}":{encode(members[name]).decode()}'
    return f",{text}" if before else f"{text},"


def clamp_members(marks: Marks) -> tuple[str, str]:
    """Return the members `claim_type` and `guards` of a record with a clamped number, as texts."""
    members = marks.guards([SearchGuard.CLAMP], True)
    return member("claim_type", members), member("guards", members)


def _cut(text: bytes) -> str:
    """Return the last 48 bytes of a text or fewer, starting at a whole character."""
    kept = text[-_REPR_BYTES:]
    start = 0
    while start < len(kept) and kept[start] & 0xC0 == 0x80:
        start += 1
    return kept[start:].decode()


# Records of questions.

_PLACES = 9


class AskLines:
    """Renders the records of one run's questions.

    Args:
        beta: the beta of the artifact, as numerator and decimal places.
        terms: the caps and the adapters of the run.
    """

    def __init__(self, beta: tuple[int, int], terms: Terms) -> None:
        self._beta = beta
        self._caps = cap_fields(terms.settings.spending_caps)
        self._adapters = terms.adapters
        self._rule = terms.ask_rule

    def requeue(self, node: Item, node_id: str, clamp: bool, marks: Marks) -> Mapping[str, Json]:
        """Return a `requeue` record."""
        left = node[LEFT]
        return {
            "kind": "requeue",
            "node_id": node_id,
            "key_raw": q64_text(-node[ORDER]),
            **({} if left is None else {"step": step_of(left)}),
            **marks.guards([SearchGuard.CLAMP] * clamp, clamp),
        }

    def reserve(
        self,
        node: Item,
        node_id: str,
        choice: Choice,
        spent: SpentAmounts,
        wish: Wish | None,
        marks: Marks,
    ) -> Mapping[str, Json]:
        """Return the `budget` record before a question: `reserve`, or `refused` if the account
        refuses.

        For `reserve`, the amounts spent include the expected amounts of the question.
        """
        refused = wish is not None and not wish.granted
        predicted, clamped = self._predicted(choice)
        return {
            "kind": "budget",
            "budget_event": "refused" if refused else "reserve",
            **_edge(node, node_id),
            **self._model(choice),
            **predicted,
            **({} if refused or choice.slack is None else {"slack": q64_text(choice.slack)}),
            **({} if wish is None else {"reservation": wish.name}),
            **left_field(None if wish is None else wish.left),
            **spent_fields(spent if refused else spent.plus(choice.reserved)),
            **self._caps,
            **marks.guards([SearchGuard.CLAMP] * clamped, False),
        }

    def _predicted(self, choice: Choice) -> tuple[Mapping[str, Json], bool]:
        """Return the predicted gain of a question, and whether one of its numbers was clamped."""
        predicted, clamped = slack(self._beta, choice.gain)
        margin, also = margin_fields(self._rule, self._beta, choice)
        return {"dkey_pred": format_q32(predicted), **margin}, clamped or also

    def exhausted(
        self, node: Item | None, node_id: str | None, spent: SpentAmounts, marks: Marks
    ) -> Mapping[str, Json]:
        """Return the `budget` record `exhausted`: no question is left for the edge of `node`."""
        return {
            "kind": "budget",
            "budget_event": "exhausted",
            **({} if node is None or node_id is None else _edge(node, node_id)),
            **spent_fields(spent),
            **self._caps,
            **marks.guards([SearchGuard.BUDGET], False),
        }

    def refine(
        self, asked: AnsweredAsk, node_id: str, spent: SpentAmounts, marks: Marks
    ) -> Mapping[str, Json]:
        """Return a `refine` record, with the answer as it was given, even if it is outside the
        range.
        """
        predicted, one = self._predicted(asked.choice)
        realised, other = slack(self._beta, (asked.gained, 1))
        answer: dict[str, Json] = {}
        if asked.answer is not None:
            low, high = asked.answer
            answer["cost_low"] = format_decimal(low, _PLACES)
            answer["cost_high"] = format_decimal(high, _PLACES)
        fired = [SearchGuard.RANGE] * asked.fails + [SearchGuard.CLAMP] * (one or other)
        return {
            "kind": "refine",
            **_edge(asked.node, node_id),
            **self._model(asked.choice),
            **predicted,
            "dkey_real": format_q32(realised),
            "price": str(asked.took.price),
            "latency": str(asked.took.latency),
            "epsilon": format_decimal(asked.took.epsilon, _PLACES),
            **({} if asked.took.atom is None else {"atom": atom_document(asked.took.atom)}),
            **answer,
            **left_field(asked.left),
            **spent_fields(spent),
            **marks.guards(fired, asked.fails),
        }

    def _model(self, choice: Choice) -> Mapping[str, Json]:
        """Return the model that is asked, and its adapter."""
        adapter = adapter_of(choice.model, self._adapters)
        return {"model_id": choice.model.name, **({} if adapter is None else adapter.asked)}


def _edge(node: Item, node_id: str) -> Mapping[str, Json]:
    call = call_of(node)
    return {
        "node_id": node_id,
        "ctx_digest": node[ID].hex(),
        "call": "" if call is None else call.text,
    }


def left_field(left: Remainder | None) -> Mapping[str, Json]:
    """Return the member with the remainders of an account's caps."""
    return {} if left is None else {"account_left": left_texts(left)}


def left_texts(left: Remainder) -> Mapping[str, Json]:
    """Return the remainder of each cap as a text, by the name of the amount."""
    return {name: _amount(name, number) for name, number in left.capped()}


def account_field(terms: Terms) -> Mapping[str, Json]:
    """Return the member `account` of the `open` record, if the run draws on an account."""
    if terms.account is None:
        return {}
    return {"account": account_member(*terms.account)}


def account_member(name: str, caps: Caps) -> Mapping[str, Json]:
    """Return an account as records name it: its id and its caps."""
    shown: dict[str, Json] = {"id": name}
    for cap, number in caps.left(AccountAmounts()).capped():
        shown[cap] = _amount(cap, number) if cap == "epsilon" else number
    return shown


def _amount(name: str, number: int) -> str:
    return format_decimal(number, _PLACES if name == "epsilon" else 0)


def adapters_field(terms: Terms) -> Mapping[str, Json]:
    """Return the member `adapters` of the `open` record, if models with adapters may be asked."""
    listed = [adapter.listed for adapter in terms.adapters]
    return {"adapters": listed} if listed else {}


def delta_fields(taken: Taken) -> Mapping[str, Json]:
    """Return the members `delta` and `accounting`, which names how privacy losses are added up."""
    return {"delta": taken.delta.text, "accounting": PLD}


def controller_field(terms: Terms) -> Mapping[str, Json]:
    """Return the member `controller` of the `open` record, if costs are ranges."""
    if terms.ask is None:
        return {}
    return {"controller": {"ask": terms.ask, **weights(terms.settings)}}


def weights(settings: Settings) -> Mapping[str, Json]:
    """Return the weights of a controller, and its margin if it has one."""
    names = ("price_weight", "latency_weight", "epsilon_weight")
    found = {name: getattr(settings, name) for name in names}
    return found if settings.margin is None else {**found, "margin": settings.margin}
