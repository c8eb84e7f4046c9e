"""The records that are expected: what a ledger has to say at each point of a run, field by field.

Normative text: docs/spec/ledger.md, sections 3 and 11.  The replay makes the expected record and
:func:`compare` holds the one that is there against it; a field more or less is a finding too.
Cost: the text of two or three numbers a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, encode, format_decimal
from tcc_certs.formats.ledger import Line, Record, format_q64
from tcc_certs.formats.ledger_schema import check_record, text
from tcc_certs.race.digest import uuid7, uuid7_of_hex, uuid7_stamp
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.language import Language, States
from tcc_certs.replay.races.children import Texts
from tcc_certs.replay.tree import Node

REPR_CALLS, REPR_BYTES = 3, 48
MAX_TEXTS = 1 << 16
_POPS = ("draw", "expand", "leaf", "requeue")

_CODES: Mapping[str, Code] = {
    "ctx_digest": Code.CONTEXT_DIGEST,
    "U": Code.UNIFORM,
    "W": Code.UNIFORM,
    "winner": Code.WINNER,
    "neg_log_t": Code.ARRIVAL,
    "key_raw": Code.KEY,
    "V": Code.VALUE,
    "U_P": Code.VALUE,
    "incumbent": Code.INCUMBENT,
    "phi_before": Code.POTENTIAL,
    "phi_after": Code.POTENTIAL,
    "delta_phi": Code.POTENTIAL,
    "guards": Code.GUARD,
    "claim_type": Code.CLAIM,
    "tail_lse": Code.TAIL,
    "model_id": Code.ASK,
    "dkey_pred": Code.ASK,
    "dkey_margin": Code.MARGIN,
    "reservation": Code.RESERVATION,
    "adapter_id": Code.ASK,
    "dp_cert_id": Code.ASK,
    "eps_train": Code.ASK,
    "delta_train": Code.ASK,
    "dkey_real": Code.ANSWER,
    "price_spent": Code.SPENT,
    "latency_ms": Code.SPENT,
    "epsilon_used": Code.SPENT,
    "router_rdp_eps": Code.RDP_EPSILON,
    "alpha_selected": Code.RDP_ORDER,
    "eps_delta": Code.EPS_DELTA,
    "price_cap": Code.SPENT,
    "sla_ms": Code.SPENT,
    "epsilon_cap": Code.SPENT,
    "seed": Code.SEED,
    "opening_salt": Code.OPENING,
}


def compare(expected: Record, found: Record, line: int, rest: Code, findings: Findings) -> None:
    """Note every field in which `found` differs from `expected`.

    Args:
        rest: the code of fields that have none of their own.
    """
    if found == expected:
        return
    for name, value in expected.items():
        if name not in found:
            findings.add(Code.LEDGER_SCHEMA, line, name, value, "no field")
        elif found[name] != value:
            findings.add(_CODES.get(name, rest), line, name, value, found[name])
    for name in found:
        if name not in expected:
            findings.add(Code.LEDGER_SCHEMA, line, name, "no field", found[name])


def hold_against(
    expected: Record, record: Record, line: int, place: Node | None, findings: Findings
) -> None:
    """Note every field in which a record of the run differs from the one that is expected.

    Args:
        place: the child that it has to be about, whatever else it gets wrong; None: a record of an
            item that is popped, about which it has to be then.

    Raises:
        Rejected: as :func:`looked_into` and :func:`check_place`; L601 it is about another item.
    """
    if isinstance(record, Line) and record.body == body_of(expected):
        return
    found = looked_into(record, line)
    if place is not None:
        check_place(found, place)
    elif expected["kind"] in _POPS:
        named, about = pop_of(expected), pop_of(found)
        ensure(about == named, Code.POP_ORDER, "node_id", named, about)
    compare(expected, found, line, Code.NODE_FIELD, findings)


def body_of(record: Mapping[str, Json]) -> bytes:
    """The body of the line of `record`: what :func:`encode` writes, as no name needs an escape."""
    members = [
        f'"{name}":{encode_basestring(value)}' if type(value) is str else _member(name, value)
        for name, value in sorted(record.items())
    ]
    return f"{{{','.join(members)}}}".encode()


def _member(name: str, value: Json) -> str:
    return f'"{name}":{value if type(value) is int else encode(value).decode()}'


def looked_into(record: Record, line: int) -> Record:
    """The record with its fields in their form.

    Raises:
        Rejected: L101 the line is not canonical; D101, L103 its record is none of the schema.
    """
    if not isinstance(record, Line):
        return record
    read = record.record
    check_record(read, line)
    return read


def context_text(node: Node) -> str:
    """``ctx_repr``: the last three calls or fewer, cut from the left to 48 bytes."""
    return clipped(node.calls(REPR_CALLS))


def clipped(calls: Sequence[str]) -> str:
    """The same of the last calls of a prefix, three or fewer."""
    raw = " ".join(calls).encode()[-REPR_BYTES:]
    start = 0
    while start < len(raw) and raw[start] & 0xC0 == 0x80:  # inside a character
        start += 1
    return raw[start:].decode()


def node_record(
    language: Language, started_ms: int, node: Node, race: Mapping[str, Json]
) -> dict[str, Json]:
    """The ``node`` record of `node`, but for guards; `race` is what the race has to say."""
    parent, states = node.parent, node.states
    record: dict[str, Json] = {
        "kind": "node",
        "node_id": uuid7(started_ms, node.digest),
        "ctx_digest": node.digest.hex(),
        "ctx_repr": context_text(node),
        **race,
    }
    if parent is not None:
        record["parent_id"] = uuid7(started_ms, parent.digest)
        record["call"] = node.call
        record["tie_token"] = node.position
    if states is not None:
        record["state"] = states[0] if language.deterministic else list(states)
    plans = 1 if states is None else language.number_of_plans(states)
    if plans < 1 << 64:
        record["Nub" if language.upper else "N"] = str(plans)
    return record


class ChildTexts:
    """What the ``node`` records of one parent's children share, and those of all nodes of a run.

    Attributes:
        parent: whose children are expected.
        parent_id: its UUID; stamp: what every UUID of the run starts with.
    """

    def __init__(
        self, language: Language, started_ms: int, places: dict[States | None, Texts]
    ) -> None:
        self._language = language
        self._places = places
        self.stamp = uuid7_stamp(started_ms)
        self.parent_id = ""
        self._before: tuple[str, ...] = ()

    def expect(self, parent: Node) -> None:
        """The records of the children of `parent` are next."""
        self.parent_id = uuid7_of_hex(self.stamp, parent.digest.hex())
        self._before = tuple(parent.calls(REPR_CALLS - 1))

    def body(self, node: Node, race: Mapping[str, str]) -> bytes:
        """The body of the line of :func:`node_record` for a child of that parent.

        Args:
            race: ``key_raw``, and where the race says so ``U`` and ``neg_log_t``.
        """
        states, call = node.states, node.call
        opening, closing = self._places.get(states) or self._place(states)
        last = node.calls(REPR_CALLS) if states is None else (*self._before, call)
        h = node.digest.hex()
        x, log = race.get("U"), race.get("neg_log_t")
        uniform = f'"U":"{x}",' if x is not None else ""
        time = f'"neg_log_t":"{log}",' if log is not None else ""
        return (
            f'{opening}{uniform}"call":{encode_basestring(call)},"ctx_digest":"{h}",'
            f'"ctx_repr":{_context(tuple(last))},"key_raw":"{race["key_raw"]}","kind":"node",{time}'
            f'"node_id":"{uuid7_of_hex(self.stamp, h)}","parent_id":"{self.parent_id}"{closing}'
            f'"tie_token":{node.position}}}'
        ).encode()

    def _place(self, states: States | None) -> tuple[str, str]:
        """What stands before the uniform, and between parent and position."""
        language = self._language
        opening, closing = "{", ","
        plans = 1 if states is None else language.number_of_plans(states)
        if plans < 1 << 64:
            opening = f'{{"{"Nub" if language.upper else "N"}":"{plans}",'
        if states is not None:
            state = states[0] if language.deterministic else encode(list(states)).decode()
            closing = f',"state":{state},'
        if len(self._places) > MAX_TEXTS:
            self._places.clear()
        self._places[states] = opening, closing
        return opening, closing


@lru_cache(maxsize=1 << 14)
def _context(calls: tuple[str, ...]) -> str:
    return encode_basestring(clipped(calls))


def popped_record(
    kind: str, started_ms: int, node: Node, fields: Mapping[str, Json]
) -> dict[str, Json]:
    """The ``expand`` or ``leaf`` record of `node`, but for guards."""
    return {"kind": kind, "node_id": uuid7(started_ms, node.digest), **fields}


def guarded(record: dict[str, Json], guards: Sequence[str], lowers: bool) -> dict[str, Json]:
    """The record with the guards that fired, and the claim where they take it down."""
    if guards:
        record["guards"] = sorted(set(guards))
    if lowers:
        record["claim_type"] = NO_CERT
    return record


def downgrade_record(mode: str, claim: str, guard: str) -> dict[str, Json]:
    """The ``downgrade`` record: what the run goes on in, by the guard that asked for it."""
    return {"kind": "downgrade", "mode": mode, "claim_type": claim, "guards": [guard]}


def popped_item(started_ms: int, node: Node, again: bool) -> str:
    """What the pop of `node` wants a record to be about: its kind, id and step.

    Args:
        again: whether it is pushed again at once.
    """
    place = uuid7(started_ms, node.digest if node.left is None else node.left.context)
    step = "" if node.left is None else f" {node.left.step}"
    kind = "draw" if step else "leaf" if node.states is None else "expand"
    return f"{'requeue' if again else kind} {place}{step}"


def pop_of(record: Record) -> str:
    """What a record is about, in the words of :func:`popped_item`."""
    step = f" {record['step']}" if "step" in record else ""
    return f"{record.get('kind')} {record.get('node_id')}{step}"


def check_place(record: Record, expected: Node) -> None:
    """The record is about the child that is expected, whatever else it gets wrong.

    Raises:
        Rejected: L602 it is about another one.
    """
    if record.get("tie_token") != expected.position and record.get("call") != expected.call:
        found = f"{record.get('tie_token')} {record.get('call')}"
        raise Rejected(Code.MISSING_CHILD, "call", f"{expected.position} {expected.call}", found)


def no_node_expected(frontier: Iterable[bytes], record: Record) -> Rejected:
    """What refuses a ``node`` where none is expected: L603 one that is in the frontier, else L104.

    Args:
        frontier: the digests in it.
    """
    named = text(record, "ctx_digest")
    twice = any(digest.hex() == named for digest in frontier)
    code = Code.REPEATED_CONTEXT if twice else Code.LEDGER_ORDER
    return Rejected(code, "kind", "expand, leaf or close", f"node {named}")


def plan_record(node: Node, value: int, cost_high: int) -> dict[str, Json]:
    """A plan of ``close``; `cost_high` is above its cost where a call's cost is still a range."""
    record: dict[str, Json] = {
        "calls": node.calls(),
        "cost": format_decimal(node.cost_low, 9),
        "leaf_id": node.digest.hex(),
        "value": format_q64(value),
    }
    if cost_high != node.cost_low:
        record["cost_high"] = format_decimal(cost_high, 9)
    return record


def edge_fields(started_ms: int, edge: Node | None) -> Mapping[str, Json]:
    """The edge that an ask is about, by the node that it leads to."""
    if edge is None:
        return {}
    return {
        "node_id": uuid7(started_ms, edge.digest),
        "ctx_digest": edge.digest.hex(),
        "call": edge.call,
    }
