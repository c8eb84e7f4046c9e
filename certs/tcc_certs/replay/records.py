"""The expected records: the fields of each record of a run.

Normative text: docs/spec/ledger.md, sections 3 and 11.  The replay makes the expected record, and
:func:`compare` compares the record of the ledger with it.  An additional or missing field is a
finding, too.  Cost: the text of two or three numbers for each record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring
from operator import itemgetter

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, decode, encode, format_decimal
from tcc_certs.formats.ledger import Line, Record, format_q64
from tcc_certs.formats.ledger_schema import check_record, text
from tcc_certs.race.digest import uuid7, uuid7_of_hex, uuid7_stamp
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.language import Language, States
from tcc_certs.replay.races.children import Texts
from tcc_certs.replay.tree import Node

REPR_CALLS, REPR_BYTES = 3, 48
MAX_TEXTS = 1 << 16
POPS = frozenset({"draw", "expand", "leaf"})
DERIVED = POPS | {"node", "rest"}  # the kinds whose content follows from the seed
# In the order of findings: a wrong field makes later fields wrong as well.
_NODE_FIELDS = (
    "kind", "node_id", "ctx_digest", "ctx_repr", "U", "neg_log_t", "key_raw", "parent_id", "call",
    "tie_token", "state", "N", "Nub",
)  # fmt: skip

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
    """Add a finding for every field in which `found` differs from `expected`.

    Args:
        rest: the code for fields without a code in `_CODES`.
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
    expected: Record | bytes, record: Record, line: int, place: Node | None, findings: Findings
) -> None:
    """Add a finding for every field in which a record of the run differs from the expected record.

    Args:
        expected: a record, or the body of its line.
        place: the child that the record must be about, even if other fields are wrong.  None: a
            record about a popped item, which must be the expected item.

    Raises:
        Rejected: L601 the record is about another item; a code of :func:`looked_into` or
            :func:`check_place`.
    """
    expected = record_of(expected)
    found = looked_into(record, line)
    if place is not None:
        check_place(found, place)
    elif expected["kind"] in POPS | {"requeue"}:
        named, about = pop_of(expected), pop_of(found)
        ensure(about == named, Code.POP_ORDER, "node_id", named, about)
    compare(expected, found, line, Code.NODE_FIELD, findings)


def looked_into(record: Record, line: int) -> Record:
    """Return the record after checking the format of its fields.

    Raises:
        Rejected: L101 the line is not canonical; D101, L103 it is no record of the schema.
    """
    if not isinstance(record, Line):
        return record
    read = record.record
    check_record(read, line)
    return read


# ---- Lines of records whose content follows from the seed, as bytes.

_TEXT = '"%s"'
_FORMS = {"step": "%s", "dead_end": "true%.0s"}  # a whole number; True


@lru_cache(maxsize=1 << 6)
def _form(names: tuple[str, ...]) -> tuple[str, Callable[[Mapping[str, Json]], tuple[Json, ...]]]:
    """Return a format string for the text of a record with these members, and its getter."""
    members = [f'"{name}":{_FORMS.get(name, _TEXT)}' for name in sorted(names)]
    return f"{{{','.join(members)}}}", itemgetter(*sorted(names))


def body_of(record: Mapping[str, Json]) -> bytes:
    """Return the body of the line of a record whose texts need no escapes."""
    form, told = _form(tuple(record))
    return (form % told(record)).encode()


class RunTexts:
    """Texts that are shared by the records of one parent's children, and by all nodes of a run.

    Attributes:
        name: the UUID of the node that was popped last.
    """

    def __init__(
        self, language: Language, started_ms: int, places: dict[States | None, Texts]
    ) -> None:
        self._language = language
        self._places = places
        self._stamp = uuid7_stamp(started_ms)
        self._before: tuple[str, ...] = ()
        self.name = ""

    def named(self, digest: bytes) -> str:
        """Return the UUID of a node or leaf."""
        return uuid7_of_hex(self._stamp, digest.hex())

    def expect(self, parent: Node, name: str) -> None:
        """Prepare the texts for the children of `parent`, whose records are next."""
        self.name = name
        self._before = tuple(parent.calls(REPR_CALLS - 1))

    def node(self, node: Node, race: Mapping[str, str]) -> bytes:
        """Return the body of the ``node`` record of the root, or of a child of the expected parent.

        Args:
            race: ``key_raw``, and ``U`` and ``neg_log_t`` if the race has them.
        """
        states, call = node.states, node.call
        opening, closing = self._places.get(states) or self._place(states)
        last: Sequence[str] = ()
        edge = parent = tie = ""
        if node.parent is not None:
            last = node.calls(REPR_CALLS) if states is None else (*self._before, call)
            edge = f'"call":{encode_basestring(call)},'
            parent, tie = f',"parent_id":"{self.name}"', f',"tie_token":{node.position}'
        h = node.digest.hex()
        x, log = race.get("U"), race.get("neg_log_t")
        uniform = f'"U":"{x}",' if x is not None else ""
        time = f'"neg_log_t":"{log}",' if log is not None else ""
        return (
            f'{opening}{uniform}{edge}"ctx_digest":"{h}","ctx_repr":{_context(tuple(last))},'
            f'"key_raw":"{race["key_raw"]}","kind":"node",{time}'
            f'"node_id":"{uuid7_of_hex(self._stamp, h)}"{parent}{closing}{tie}}}'
        ).encode()

    def _place(self, states: States | None) -> tuple[str, str]:
        """Return the text before the uniform, and the text between parent and position."""
        language = self._language
        opening, closing = "{", ""
        plans = 1 if states is None else language.number_of_plans(states)
        if plans < 1 << 64:
            opening = f'{{"{"Nub" if language.upper else "N"}":"{plans}",'
        if states is not None:
            state = states[0] if language.deterministic else encode(list(states)).decode()
            closing = f',"state":{state}'
        if len(self._places) > MAX_TEXTS:
            self._places.clear()
        self._places[states] = opening, closing
        return opening, closing


@lru_cache(maxsize=1 << 14)
def _context(calls: tuple[str, ...]) -> str:
    """Return ``ctx_repr``: the last three calls of a prefix, cut from the left to 48 bytes."""
    raw = " ".join(calls).encode()[-REPR_BYTES:]
    start = 0
    while start < len(raw) and raw[start] & 0xC0 == 0x80:  # inside a character
        start += 1
    return encode_basestring(raw[start:].decode())


def record_of(expected: Record | bytes) -> Record:
    """Return the record.

    Decode the body of a ``node``, with its fields in the order of findings.
    """
    if not isinstance(expected, bytes):
        return expected
    read = decode(expected, "node")
    said = read if isinstance(read, dict) else {}
    return {name: said[name] for name in _NODE_FIELDS if name in said}


def guarded(record: Record, guards: Sequence[str], lowers: bool) -> Record:
    """Return the record with the guards that fired, and with NoCert if they lower the claim."""
    told: dict[str, Json] = {**record, "guards": sorted(set(guards))}
    return {**told, "claim_type": NO_CERT} if lowers else told


def downgrade_record(mode: str, claim: str, guard: str) -> dict[str, Json]:
    """Return the ``downgrade`` record: the new mode and claim, and the guard that requires it."""
    return {"kind": "downgrade", "mode": mode, "claim_type": claim, "guards": [guard]}


def popped_item(started_ms: int, node: Node, again: bool) -> str:
    """Return the kind, id and step that the record of the next pop must have.

    Args:
        again: whether the item is requeued instead of popped.
    """
    place = uuid7(started_ms, node.digest if node.left is None else node.left.context)
    step = "" if node.left is None else f" {node.left.step}"
    kind = "draw" if step else "leaf" if node.states is None else "expand"
    return f"{'requeue' if again else kind} {place}{step}"


def pop_of(record: Record) -> str:
    """Return the kind, id and step of a record, in the format of :func:`popped_item`."""
    step = f" {record['step']}" if "step" in record else ""
    return f"{record.get('kind')} {record.get('node_id')}{step}"


def check_place(record: Record, expected: Node) -> None:
    """Check that the record is about the expected child.

    Raises:
        Rejected: L602: it is about another child.
    """
    if record.get("tie_token") != expected.position and record.get("call") != expected.call:
        found = f"{record.get('tie_token')} {record.get('call')}"
        raise Rejected(Code.MISSING_CHILD, "call", f"{expected.position} {expected.call}", found)


def no_node_expected(frontier: Iterable[bytes], record: Record) -> Rejected:
    """Return the refusal of an unexpected ``node``: L603 if it is in the frontier, else L104.

    Args:
        frontier: the digests in the frontier.
    """
    named = text(record, "ctx_digest")
    twice = any(digest.hex() == named for digest in frontier)
    code = Code.REPEATED_CONTEXT if twice else Code.LEDGER_ORDER
    return Rejected(code, "kind", "expand, leaf or close", f"node {named}")


def plan_record(node: Node, value: int, cost_high: int) -> dict[str, Json]:
    """Return a plan of ``close``; `cost_high` exceeds its cost if the cost is still a range."""
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
    """Return the fields that name the edge of a question, by the node that it leads to."""
    if edge is None:
        return {}
    return {
        "node_id": uuid7(started_ms, edge.digest),
        "ctx_digest": edge.digest.hex(),
        "call": edge.call,
    }
