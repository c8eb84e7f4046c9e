"""Renders the frequent records of a ledger by hand, members in the order of their sorted names.

Nodes, steps, and the records of asking: `requeue`, `budget`, `refine`, and the part of `close`
about all asks.  Format: docs/spec/ledger.md, sections 3 and 11; a test compares the lines with the
bytes of the canonical writer.  Cost: the formatting of a few numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from json.encoder import encode_basestring

from tcc_certs.formats.codec import Json, encode, format_decimal
from tcc_certs.formats.ledger import digits_q64, format_q32, format_q64
from tcc_certs.policy.atoms import atom_document
from tcc_certs.privacy.accountant import RENYI
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
# 10^20 / 2^64 is 5^20 / 2^44; only a multiple of 2^43 may stand between two texts.
DROP = 44
FIVES = 5**20
HALF = 1 << DROP - 1
TIE = HALF - 1
ONE, MINUS_ONE = 1 << 64, -1 << 64  # what lies between them may need a leading 0


class Marks:
    """Whether the claim was lowered already: only the first record that does it says so."""

    __slots__ = ("lowered",)

    def __init__(self, lowered: bool = False) -> None:
        self.lowered = lowered

    def guards(self, names: list[SearchGuard], lowers: bool) -> dict[str, Json]:
        """The members `guards` and `claim_type` of a record where `names` fired."""
        found: dict[str, Json] = {}
        if names:
            found["guards"] = sorted({name.value for name in names})
        if lowers and not self.lowered:
            self.lowered = True
            found["claim_type"] = "NoCert"
        return found


class Contexts(dict[tuple[WeightedCall, ...], "Following"]):
    """`ctx_repr`, with its quotes, by the last calls of a prefix: those before the last, and it.

    Some thousand entries at most, whatever the run; then it begins anew.
    """

    __slots__ = ("_size",)

    def __init__(self) -> None:
        self._size = 0

    def __missing__(self, before: tuple[WeightedCall, ...]) -> Following:
        self.grow()
        found = self[before] = Following(self, before)
        return found

    def grow(self) -> None:
        """Another entry is going to be kept, here or in one of these."""
        self._size += 1
        if self._size > _MOST_CONTEXTS:
            self._size = 1
            self.clear()

    def of(self, calls: tuple[WeightedCall, ...]) -> str:
        """`ctx_repr` of a prefix with these last calls."""
        return self[calls[:-1]][calls[-1]] if calls else '""'


class Following(dict[WeightedCall, str]):
    """`ctx_repr` of the prefixes that go on with one call, by that call."""

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
    """Q64.64 text; tcc_certs.formats.ledger.format_q64 is the definition."""
    digits = str(value * FIVES + HALF >> DROP)
    if ONE > value > MINUS_ONE or not value & TIE:
        digits = rare_digits(digits, value)
    return f"{digits[:-20]}.{digits[-20:]}"


def rare_digits(digits: str, value: int) -> str:
    """The digits of a number that is small, or may stand between two texts."""
    return digits.zfill(21 + (value < 0)) if value & TIE else digits_q64(value)


class KeyTexts(dict[int, str]):
    """Keys without noise, which many nodes have, as Q64.64 text, by minus the key."""

    def __missing__(self, order: int) -> str:
        if len(self) >= _MOST_NUMBERS:
            self.clear()
        found = self[order] = format_q64(-order)
        return found


key_texts = KeyTexts()


def stamp_of(started_ms: int) -> str:
    """The start of every node_id of a run."""
    time = f"{started_ms:012x}"
    return f"{time[:8]}-{time[8:]}-7"


def node_id(stamp: str, text: str) -> str:
    """The UUIDv7 of a digest in hex; tcc_certs.race.digest.uuid7 is the definition."""
    return f"{stamp}{text[13:16]}{VARIANT[text[16]]}{text[17:20]}-{text[20:32]}"


def member(name: str, members: Mapping[str, Json], *, before: bool = False) -> str:
    """A member and its comma, which stands after it or `before`; nothing where it is not there."""
    if name not in members:
        return ""
    text = f'"{name}":{encode(members[name]).decode()}'
    return f",{text}" if before else f"{text},"


def clamp_members(marks: Marks) -> tuple[str, str]:
    """The members `claim_type` and `guards` of a record with a clamped number."""
    members = marks.guards([SearchGuard.CLAMP], True)
    return member("claim_type", members), member("guards", members)


def _cut(text: bytes) -> str:
    """The last 48 bytes or fewer, from the start of a character on."""
    kept = text[-_REPR_BYTES:]
    start = 0
    while start < len(kept) and kept[start] & 0xC0 == 0x80:
        start += 1
    return kept[start:].decode()


# Records of asking.

_PLACES = 9


class AskLines:
    """Renders the records of one run's asks.

    Args:
        beta: of the artifact, numerator and places.
        terms: the caps, and the adapters.
    """

    def __init__(self, beta: tuple[int, int], terms: Terms) -> None:
        self._beta = beta
        self._caps = cap_fields(terms.settings.spending_caps)
        self._adapters = terms.adapters
        self._rule = terms.ask_rule

    def requeue(self, node: Item, node_id: str, clamp: bool, marks: Marks) -> Mapping[str, Json]:
        """`requeue`."""
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
        """`budget`, before an ask: `spent` with what it is expected to take; or a refusal of it."""
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
        """What an ask is expected to gain, and whether a number of it had to be clamped."""
        predicted, clamped = slack(self._beta, choice.gain)
        margin, also = margin_fields(self._rule, self._beta, choice)
        return {"dkey_pred": format_q32(predicted), **margin}, clamped or also

    def exhausted(
        self, node: Item | None, node_id: str | None, spent: SpentAmounts, marks: Marks
    ) -> Mapping[str, Json]:
        """`budget`, where no ask is left; `node` has the edge that wanted one."""
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
        """`refine`: the answer as it was given, inside or not."""
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
        """The model that is asked, and the adapter that it runs with."""
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
    """The remainder of the caps of an account."""
    return {} if left is None else {"account_left": left_texts(left)}


def left_texts(left: Remainder) -> Mapping[str, Json]:
    """The remainder of each cap, by the name of what it is a cap of."""
    return {name: _amount(name, number) for name, number in left.capped()}


def account_field(terms: Terms) -> Mapping[str, Json]:
    """The member `account` of `open`, where the run draws on one."""
    if terms.account is None:
        return {}
    return {"account": account_member(*terms.account)}


def account_member(name: str, caps: Caps) -> Mapping[str, Json]:
    """An account as records name it, by its identity and its caps."""
    shown: dict[str, Json] = {"id": name}
    for cap, number in caps.left(AccountAmounts()).capped():
        shown[cap] = _amount(cap, number) if cap == "epsilon" else number
    return shown


def _amount(name: str, number: int) -> str:
    return format_decimal(number, _PLACES if name == "epsilon" else 0)


def adapters_field(terms: Terms) -> Mapping[str, Json]:
    """The member `adapters` of `open`, where models that may be asked run with some."""
    listed = [adapter.listed for adapter in terms.adapters]
    return {"adapters": listed} if listed else {}


def rule_field(taken: Taken) -> Mapping[str, Json]:
    """What a first record says of how an account of privacy is added up."""
    return {} if taken.rule == RENYI else {"accounting": taken.rule}


def controller_field(terms: Terms) -> Mapping[str, Json]:
    """The member `controller` of `open`, where costs are ranges."""
    if terms.ask is None:
        return {}
    return {"controller": {"ask": terms.ask, **weights(terms.settings)}}


def weights(settings: Settings) -> Mapping[str, Json]:
    """What a controller weighs by, and its margin where it has one."""
    names = ("price_weight", "latency_weight", "epsilon_weight")
    found = {name: getattr(settings, name) for name in names}
    return found if settings.margin is None else {**found, "margin": settings.margin}
