"""Large artifacts made layer by layer: random acyclic automata with valid certificates.

The states of a layer have the same rank.  Layers have 1, 2, 16, 128 .. states and then the
requested width; at the top they shrink to the root.  Each state has 2 to 6 edges on distinct calls.
Its first edges lead to the layer below, so that ranks are right, and every state of that layer has
an incoming edge.  The core says that any sequence of calls is a plan, so it is not the core of the
automaton, and only ``check`` without ``--core`` succeeds.  Cost: about 40 us per state.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from benchmarks.cores import core_of
from tcc_certs.formats.artifact import Manifest
from tcc_certs.formats.codec import call_digest, decode, encode, root_document
from tcc_certs.policy.core import Core
from tcc_certs.policy.reader import core_json
from tcc_certs.race.enclosures import call_residual, call_weight, fraction_bits
from tcc_compiler.artifact import pack_limbs, pack_texts, write_artifact

Numbers = NDArray[np.int64]
_SPREAD = 4  # mean number of edges of a state
_CALLS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The automaton: [n+1] starts, [e] calls and targets, [n] acceptance and ranks."""

    start: Numbers
    call: Numbers
    target: Numbers
    accept: Numbers
    rank: Numbers
    digest: bytes


FOLDER = Path(tempfile.gettempdir()) / "tcc-benchmarks"


def kept(states: int, layers: int, *, tilt: int = 0) -> Path:
    """Return a file with the artifact of :func:`layered`; make it if it does not exist."""
    path = FOLDER / f"{states}-{layers}-{tilt}.tcca"
    if not path.exists():
        FOLDER.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(layered(states, layers, tilt=tilt))
        part.replace(path)
    return path


def layered(states: int, layers: int, *, tilt: int = 0, seed: int = 1) -> bytes:
    """Return the bytes of an artifact of about `states` states with `layers` ranks.

    A state has about four edges.  More layers make counts wider, by about 1.5 bits per layer for
    ``plans`` and by F bits for race counts.
    """
    core = _core(layers)
    core_bytes = encode(core_json(core))
    costs = [call.cost_low for call in core.calls]
    bits = fraction_bits((1, 0), max(costs), tilt)
    weight = [call_weight((1, 0), cost, bits, tilt) for cost in costs]
    residual = [call_residual((1, 0), cost, w, bits) for cost, w in zip(costs, weight, strict=True)]
    rows = _rows(core, _widths(states, layers), np.random.default_rng(seed))
    columns = {
        "edge_start": rows.start.astype("<u8").tobytes(),
        "edge_call": rows.call.astype("<u4").tobytes(),
        "edge_target": rows.target.astype("<u4").tobytes(),
        "accept": rows.accept.astype("u1").tobytes(),
        "rank": rows.rank.astype("<u4").tobytes(),
        "cost_to_go": _bound(rows, np.array(costs), least=True).astype("<i8").tobytes(),
        "residual_to_go": _bound(rows, np.array(residual), least=False).astype("<i8").tobytes(),
        "state_digest": rows.digest,
        "call_text": pack_texts(call.text for call in core.calls),
        "call_cost_low": np.array(costs, "<i8").tobytes(),
        "call_cost_high": np.array(costs, "<i8").tobytes(),
        "call_weight": np.array(weight, "<u8").tobytes(),
        "call_price": bytes(8 * len(costs)),
        "call_latency_ms": bytes(8 * len(costs)),
        "call_epsilon": bytes(8 * len(costs)),
        "core": core_bytes,
        "tools": encode(decode(core_bytes, "core")["tools"]),  # type: ignore[index, call-overload]
    }
    plans, race = _counts(rows, weight, bits)
    columns["plans"] = pack_limbs(plans)
    if race != plans:
        columns["race_count"] = pack_limbs(race)
    manifest = Manifest(
        grammar=core.name,
        version=core.version,
        beta=(1, 0),
        tilt=tilt,
        fraction_bits=bits,
        states=len(rows.accept),
        edges=len(rows.call),
        calls=len(costs),
        root=rows.digest[-32:],
        cost_max=max(costs),
        root_document=root_document(core.name, core.version, core.limit_texts),
    )
    return write_artifact(manifest, columns)


def _core(layers: int) -> Core:
    tools = "\n".join(f"tool t{i:02d} {{ cost 0.{i + 1:02d} }}" for i in range(_CALLS))
    text = f'grammar layered version "1"\n{tools}\nlimit depth <= {layers}\n'
    return core_of(text)


def _widths(states: int, layers: int) -> list[int]:
    """Return the number of states of each rank: a narrow foot, a wide body, a narrow top."""
    foot, top = [1, 2], [1]
    width = max(4, states // layers)
    while foot[-1] * 8 < width:
        foot.append(foot[-1] * 8)
    while top[-1] * 3 < width:
        top.append(top[-1] * 3)
    body = max(1, layers - len(foot) - len(top) + 1)
    width = max(width, (states - sum(foot) - sum(top)) // body)
    return [*foot, *[width] * body, *reversed(top)]


def _rows(core: Core, widths: list[int], random: np.random.Generator) -> Rows:
    names = [call_digest(call.text.encode(), call.cost_low, call.cost_high) for call in core.calls]
    calls, targets, degrees, accepts, digests = [], [], [], [], []
    first = 0  # of the layer below
    before = 0
    for rank, width in enumerate(widths):
        if rank == 0:
            layer = [(1, np.empty(0, np.int64), np.empty(0, np.int64))]
        else:
            layer = list(_layer(width, before, first, random))
        made = sorted(
            (_state_digest(accept, call, target, names, digests), at)
            for at, (accept, call, target) in enumerate(layer)
        )
        if len({digest for digest, _ in made}) < len(made):
            raise ValueError("two states are one: take another seed")
        for digest, at in made:
            accept, call, target = layer[at]
            accepts.append(accept)
            calls.append(call)
            targets.append(target)
            degrees.append(len(call))
            digests.append(digest)
        first, before = len(digests) - len(made), len(made)
    return Rows(
        start=np.concatenate(([0], np.cumsum(degrees))),
        call=np.concatenate(calls),
        target=np.concatenate(targets),
        accept=np.array(accepts),
        rank=np.repeat(np.arange(len(widths)), widths),
        digest=b"".join(digests),
    )


def _layer(
    width: int, before: int, first: int, random: np.random.Generator
) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Yield the states of a layer: acceptance, calls, targets; they cover the layer below."""
    shares = -(-before // width)
    covering = first + np.arange(shares * width) % before
    random.shuffle(covering)
    degree = random.integers(max(2, shares), max(2 * _SPREAD - 2, shares) + 1, width)
    accept = random.integers(0, 2, width)
    marks = random.random((width, _CALLS))
    below = first + before
    for at in range(width):
        call = np.sort(np.argpartition(marks[at], degree[at])[: degree[at]])
        target = random.integers(0, below, degree[at])
        target[:shares] = covering[at * shares : (at + 1) * shares]
        yield int(accept[at]), call, target


def _state_digest(
    accept: int, call: Numbers, target: Numbers, names: list[bytes], digests: list[bytes]
) -> bytes:
    pairs = zip(call.tolist(), target.tolist(), strict=True)
    body = b"".join([names[a] + digests[q] for a, q in pairs])
    return blake3(bytes((0x10, accept)) + body).digest()


def _counts(rows: Rows, weight: list[int], bits: int) -> tuple[list[int], list[int]]:
    """Return N (plans) and m (race counts) of every state."""
    plans: list[int] = []
    race: list[int] = []
    starts, calls, targets = rows.start.tolist(), rows.call.tolist(), rows.target.tolist()
    ranks = rows.rank.tolist()
    for q, accept in enumerate(rows.accept.tolist()):
        row = range(starts[q], starts[q + 1])
        plans.append(accept + sum([plans[targets[i]] for i in row]))
        up = bits * (ranks[q] - 1)
        terms = [weight[calls[i]] * race[targets[i]] << up - bits * ranks[targets[i]] for i in row]
        race.append((accept << bits * ranks[q]) + sum(terms))
    return plans, race


def _bound(rows: Rows, step: Numbers, *, least: bool) -> Numbers:
    """Return h (least costs) if `least`, else g (greatest residuals), computed rank by rank."""
    best = np.minimum if least else np.maximum
    worst = np.iinfo(np.int64).max if least else np.iinfo(np.int64).min
    found = np.where(rows.accept == 1, 0, worst)
    ends = np.searchsorted(rows.rank, np.arange(rows.rank[-1] + 2))
    for low, high in zip(ends[1:-1].tolist(), ends[2:].tolist(), strict=True):
        span = slice(int(rows.start[low]), int(rows.start[high]))
        through = step[rows.call[span]] + found[rows.target[span]]
        below = best.reduceat(through, rows.start[low:high] - span.start)
        found[low:high] = best(found[low:high], below)
    return found
