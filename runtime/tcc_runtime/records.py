"""The records of a ledger, rendered: the few by the canonical writer, the many by hand.

Format: docs/spec/ledger.md, sections 3 and 5.  `node` and `leaf` lines are put together from parts
in the order of their sorted keys; a test holds them equal to the canonical writer's bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring

from tcc_certs.codec import Json, encode
from tcc_certs.fixed import format_decimal, format_q32
from tcc_runtime.guards import Descent, Guard, Stop
from tcc_runtime.load import Artifact
from tcc_runtime.outcome import Run
from tcc_runtime.race import Expansion, Node
from tcc_runtime.settings import Settings

_REPR_BYTES = 48
_REPR_CALLS = 3
_VARIANT = {f"{digit:x}": "89ab"[digit & 3] for digit in range(16)}
_DIGITS = 10**20
_HALF = 1 << 63
_FRACTION = (1 << 64) - 1


class Marks:
    """Whether the claim was lowered already: only the first record that does it says so."""

    __slots__ = ("lowered",)

    def __init__(self) -> None:
        self.lowered = False

    def guards(self, names: list[Guard], lowers: bool) -> dict[str, Json]:
        """The members `guards` and `claim_type` of a record where `names` fired."""
        found: dict[str, Json] = {}
        if names:
            found["guards"] = sorted(name.value for name in names)
        if lowers and not self.lowered:
            self.lowered = True
            found["claim_type"] = "NoCert"
        return found


def open_record(
    artifact: Artifact, settings: Settings, commitment: bytes, started_ms: int
) -> dict[str, Json]:
    """`open`, without `run_id`."""
    manifest = artifact.manifest
    limits: dict[str, Json] = {}
    if settings.max_expansions is not None:
        limits["max_expansions"] = settings.max_expansions
    if settings.max_ms is not None:
        limits["max_ms"] = settings.max_ms
    return {
        "kind": "open",
        "schema": "tcc.ledger/1.0",
        "started_ms": started_ms,
        "artifact": artifact.digest.hex(),
        "grammar": manifest.grammar,
        "grammar_version": manifest.version,
        "root_state": manifest.root.hex(),
        "seed_commitment": commitment.hex(),
        "prf_domain": "tcc.race.v1",
        "mode": settings.mode,
        "claim_type": "RunWiseExact",
        "race": "coupled",
        "keys": settings.keys,
        "recipe": settings.recipe,
        "tilt": manifest.tilt,
        "beta": format_decimal(*manifest.beta),
        "inflate": "1",
        "tau": "1",
        "alpha": settings.alpha,
        "eta": settings.eta,
        "top": settings.top,
        "truncate": artifact.rank(artifact.root),
        "count_bits": settings.count_bits,
        "run_limits": limits,
        "privacy_scope": "post_processing_only",
    }


def expand_record(
    expansion: Expansion, node_id: str, descent: Descent | None, marks: Marks
) -> Mapping[str, Json]:
    """`expand`."""
    winner = expansion.winner
    record: dict[str, Json] = {
        "kind": "expand",
        "node_id": node_id,
        "W": str(expansion.word),
        "winner": "phantom" if winner is None else str(winner),
    }
    if descent is not None:
        fired = [Guard.ACYCLICITY] * descent.fails + [Guard.CLAMP] * descent.clamp
        record |= {
            "phi_before": format_q32(descent.before),
            "phi_after": format_q32(descent.after),
            "delta_phi": format_q32(descent.delta),
            **marks.guards(fired, descent.fails),
        }
    return record


def close_record(run: Run) -> dict[str, Json]:
    """`close`, without the seed."""
    record: dict[str, Json] = {
        "kind": "close",
        "stop": run.stop.value,
        "claim_type": run.claim_type,
        "plans": [
            {
                "calls": list(plan.calls),
                "cost": plan.cost,
                "leaf_id": plan.leaf_id,
                "value": plan.value,
            }
            for plan in run.plans
        ],
        "expansions": run.expansions,
        "leaves": run.leaves,
        "law": "softmax",
    }
    if run.frontier_key is not None:
        record["frontier_key"] = run.frontier_key
    if run.gap is not None:
        record["gap"] = run.gap
    ending = _ending_guard(run)
    if ending is not None:
        record["guards"] = [ending.value]
    return record


def _ending_guard(run: Run) -> Guard | None:
    """The guard that ended the run: it fired last, and only there."""
    if run.stop in (Stop.MAX_EXPANSIONS, Stop.MAX_SECONDS, Stop.GUARD):
        return run.guards[-1]
    return None


def q64_text(value: int) -> str:
    """Q64.64 text; tcc_certs.fixed.format_q64 is the definition."""
    product = abs(value) * _DIGITS + _HALF
    scaled = product >> 64
    if product & _FRACTION == 0:
        scaled &= ~1  # a tie goes to the even one
    digits = f"{scaled:021d}"
    return f"{'-' if value < 0 else ''}{digits[:-20]}.{digits[-20:]}"


def leaf_line(leaf: Node, node_id: str, word: int, incumbent: int | None) -> bytes:
    """`leaf`."""
    best = "" if incumbent is None else f'"incumbent":"{q64_text(incumbent)}",'
    value = q64_text(leaf.key)
    return (f'{{"U_P":"{word}","V":"{value}",{best}"kind":"leaf","node_id":"{node_id}"}}').encode()


class NodeLines:
    """Renders `node` records of one run."""

    __slots__ = ("_time",)

    def __init__(self, started_ms: int) -> None:
        time = f"{started_ms:012x}"
        self._time = f"{time[:8]}-{time[8:]}-7"

    def node_id(self, digest: str) -> str:
        """The UUIDv7 of a digest in hex; tcc_certs.digest.uuid7 is the definition."""
        variant = _VARIANT[digest[16]]
        return f"{self._time}{digest[13:16]}-{variant}{digest[17:20]}-{digest[20:32]}"

    def root(self, node: Node, marks: Marks) -> bytes:
        """The root's."""
        return self._line(node, None, b"", marks)

    def children(self, expansion: Expansion, parent_id: str, marks: Marks) -> Iterator[bytes]:
        """The children's, in canonical order."""
        tail = _last_calls(expansion.node, _REPR_CALLS - 1)
        whole = _last_calls(expansion.node, _REPR_CALLS)
        for child in expansion.children:
            calls = whole if child.call is None else [*tail, child.call.raw]
            yield self._line(child, parent_id, b" ".join(calls), marks)

    def _line(self, node: Node, parent_id: str | None, shown: bytes, marks: Marks) -> bytes:
        digest, state = node.digest.hex(), node.state
        plans = "1" if state is None else state.plans
        count = "" if plans is None else f'"N":"{plans}",'
        word = "" if node.word is None else f'"U":"{node.word}",'
        call = parent = place = ""
        if parent_id is not None:
            text = "stop" if node.call is None else node.call.text
            call = f'"call":{encode_basestring(text)},'
            parent = f',"parent_id":"{parent_id}"'
            place = f',"tie_token":{node.place}'
        number = "" if state is None else f',"state":{state.number}'
        claim = guards = ""
        if node.clamp:
            claim, guards = _clamp_members(marks)
        return (
            f'{{{count}{word}{call}{claim}"ctx_digest":"{digest}",'
            f'"ctx_repr":{encode_basestring(_cut(shown))},{guards}'
            f'"key_raw":"{q64_text(node.key)}","kind":"node",'
            f'"neg_log_t":"{q64_text(node.neg_log_t)}",'
            f'"node_id":"{self.node_id(digest)}"{parent}{number}{place}}}'
        ).encode()


def _clamp_members(marks: Marks) -> tuple[str, str]:
    members = marks.guards([Guard.CLAMP], True)
    claim = f'"claim_type":"{members["claim_type"]}",' if "claim_type" in members else ""
    return claim, f'"guards":{encode(members["guards"]).decode()},'


def _last_calls(node: Node, most: int) -> list[bytes]:
    """The last calls of a prefix, at most `most`, in order."""
    calls: list[bytes] = []
    step: Node | None = node
    while step is not None and step.call is not None and len(calls) < most:
        calls.append(step.call.raw)
        step = step.parent
    return calls[::-1]


def _cut(text: bytes) -> str:
    """The last 48 bytes or fewer, from the start of a character on."""
    kept = text[-_REPR_BYTES:]
    start = 0
    while start < len(kept) and kept[start] & 0xC0 == 0x80:
        start += 1
    return kept[start:].decode()
