"""What is fuzzed: the readers of artifacts, of ledgers and of grammars, each with its seeds.

A target makes an input from a random generator and reads one.  What reading answers with is a word
for the tally; any exception is a finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tcc_certs.codec import encode
from tcc_certs.container import Tensor, write_container
from tcc_certs.core import read_core
from tcc_certs.corecheck import check_core
from tcc_certs.digest import blake
from tcc_certs.errors import Rejected
from tcc_certs.kernel import check
from tcc_certs.ledger import FIRST_HEAD, seal
from tcc_certs.manifest import Relaxed
from tcc_certs.replay.order import validate
from tcc_certs.report import check_artifact
from tcc_compiler.frontend import read_grammar_text
from tests.campaigns.mutate import TEXTS, TOKENS, mutate_bytes, mutate_json
from tests.forgery.artifacts import FORMAT, Forge
from tests.oracle.build import build
from tests.oracle.cores import at_most, depth, letters, make_core, random_core, uses
from tests.oracle.examples import example, example_core
from tests.oracle.network import build_network, build_relaxed
from tests.oracle.plans import plans
from tests.oracle_ledger.artifacts import small
from tests.oracle_ledger.writer import reference_records

GRAMMARS = Path(__file__).parents[2] / "grammars"
SMALL = b"""grammar g version "1"
tool a(k: 1..2) { cost 0.5 }
tool b
plan = a b? | b{1,2}
limit depth <= 3
require a before b
"""
_SIZES = {"I64": 8, "U64": 8, "U32": 4, "U8": 1}


@dataclass(frozen=True, kw_only=True)
class Target:
    """`make` draws an input, `read` gives the tally's word for it."""

    make: Callable[[Random], bytes]
    read: Callable[[bytes], str]


def artifact_seeds() -> list[bytes]:
    """Small artifacts of every kind."""
    core = make_core(
        **letters(3, cost=[1, 2, 3], price=[1, 0, 2]),
        plan=["diff", ["repeat", ["call", {0, 1, 2}], 0, 2], [["call", {0}]]],
        limits=[depth(2), at_most("price", 2), uses(0, "<=", 1)],
        requires=[["before", {1}, {2}]],
        forbids=[["next", [{0}, {0}]]],
    )
    words = plans(read_core(core), 2)
    tiny = make_core(**letters(1), plan=["call", {0}])
    rng = Random(1)
    drawn = [random_core(rng, 3) for _ in range(12)]
    more = [build(data, found) for data, read in drawn if (found := plans(read, 3))]
    made = [
        example(0), example(8), build(core, words), build(core, words, round_counts=4),
        build(tiny, [(0,)], tilt=0), build_relaxed(core, Relaxed(limits=(1,), requires=(0,)), 2),
        build_network(core, 2),
        build_network(example_core(), 3, Relaxed(limits=(1,)), round_counts=2),
    ]  # fmt: skip
    return [data for data in (*made, *more) if data is not None]


def artifact_target() -> Target:
    """Artifacts: bytes and containers edited, columns and JSON edited and sealed again."""
    seeds = artifact_seeds()
    parts = [_parts(data) for data in seeds]
    donors = [json.loads(columns[name][2]) for _, columns in parts for name in ("core", "tools")]
    donors += [manifest for manifest, _ in parts]

    def make(rng: Random) -> bytes:
        if rng.random() < 0.5:
            return mutate_bytes(rng, rng.choice(seeds), seeds, TOKENS)
        manifest, columns = rng.choice(parts)
        columns = dict(columns)
        if rng.random() < 0.3:
            manifest = mutate_json(rng, manifest, donors)
        else:
            _edit_column(rng, columns, rng.choice(parts)[1], donors)
        return _sealed(manifest, columns)

    def read(data: bytes) -> str:
        report = check_artifact(data)
        if report.verdict:
            return report.findings[0].code.value
        try:
            check_core(check(data), pairs=2000, steps=50_000)
        except Rejected as refusal:
            return refusal.code.value
        return "VALID"

    return Target(make=make, read=read)


def _parts(data: bytes) -> tuple[Any, dict[str, tuple[str, tuple[int, ...], bytes]]]:
    forge = Forge(data)
    return forge.manifest, {n: (d, s, r) for n, (d, s, r) in sorted(forge.columns.items())}


def _edit_column(rng: Random, columns: dict, other: dict, donors: list) -> None:
    name = rng.choice(sorted(columns))
    dtype, shape, raw = columns[name]
    match rng.randrange(10):
        case 0:
            del columns[name]
        case 1:
            columns[rng.choice(["zzz", *sorted(other)])] = columns[name]
        case 2 if name in other:
            columns[name] = other[name]
        case 3:
            columns[name] = rng.choice(sorted(FORMAT)), shape, raw
        case 4:
            raw = mutate_bytes(rng, raw, [raw, other["core"][2]], TOKENS)
            columns[name] = dtype, (len(raw) // _SIZES[dtype], *shape[1:]), raw
        case 5 | 6 | 7:
            name = rng.choice(("core", "core", "tools", "call_text"))
            raw = encoded(mutate_json(rng, json.loads(columns[name][2]), donors))
            columns[name] = "U8", (len(raw),), raw
        case _:
            items = bytearray(raw)
            size = _SIZES[dtype]
            if items:
                at = rng.randrange(len(items) // size) * size
                value = rng.choice((0, 1, 2, 255, 256, 1 << 31, 1 << 63, -1, rng.getrandbits(64)))
                low = int.from_bytes(items[at : at + size], "little")
                value = rng.choice((value, low + 1, low - 1)) % (1 << 8 * size)
                items[at : at + size] = value.to_bytes(size, "little")
            columns[name] = dtype, shape, bytes(items)


def encoded(value: Any) -> bytes:
    """Canonical JSON as far as the value allows it."""
    try:
        return encode(value)
    except (TypeError, ValueError):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _sealed(manifest: Any, columns: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> bytes:
    if isinstance(manifest, dict):
        manifest = dict(manifest)
        manifest["columns"] = {name: blake(columns[name][2]).hex() for name in sorted(columns)}
    raw = encoded(manifest)
    tensors = {name: Tensor(dtype=d, shape=s, data=r) for name, (d, s, r) in columns.items()}
    return write_container({**tensors, "manifest": Tensor(dtype="U8", shape=(len(raw),), data=raw)})


def ledger_target() -> Target:
    """Ledgers of one small artifact: bytes edited, records edited and chained again."""
    artifact = small()
    told: list[dict[str, Any]] = [
        {}, {"top": 2}, {"mode": "surrogate"}, {"keys": "anchored"}, {"mode": "fallback"},
        {"truncate": 1}, {"inflate": "2"}, {"withhold": True}, {"max_expansions": 1},
    ]  # fmt: skip
    runs = [_reached(artifact, options) for options in told]
    runs = [records for records in runs if records]
    seeds = [b"".join(_lines(records)) for records in runs]
    donors = [record for records in runs for record in records]

    def make(rng: Random) -> bytes:
        if rng.random() < 0.5:
            return mutate_bytes(rng, rng.choice(seeds), seeds, TOKENS)
        records = list(rng.choice(runs))
        at = rng.randrange(len(records))
        match rng.randrange(8):
            case 0:
                del records[at]
            case 1:
                records.insert(at, rng.choice(donors))
            case 2:
                records[at] = rng.choice(donors)
            case 3:
                records = records[: at + 1]
            case _:
                records[at] = mutate_json(rng, records[at], donors)
        return b"".join(_lines(records))

    def read(data: bytes) -> str:
        found = validate(data, artifact)
        if not found.findings:
            return f"verdict {int(found.verdict)}"
        return str(found.findings[0].code.value)

    return Target(make=make, read=read)


def _reached(artifact: Any, options: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(record) for record in reference_records(artifact, **options)]


def _lines(records: list[Any]) -> list[bytes]:
    """The chain over records of any shape."""
    lines = []
    head = FIRST_HEAD
    for record in records:
        body = record if isinstance(record, dict) else {"kind": record}
        try:
            line, head = seal(body, head)
        except (TypeError, ValueError):
            line = json.dumps(body, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        lines.append(line)
    return lines


def grammar_target() -> Target:
    """Texts of grammars: characters, tokens and lines edited."""
    texts = [path.read_bytes() for path in sorted(GRAMMARS.rglob("*.tcg"))]
    texts += [SMALL] * 6
    pieces = sorted({piece for text in texts for piece in text.split()})
    tokens = [*TOKENS, *(t.encode("utf-8", "surrogatepass") for t in TEXTS)]
    tokens += [b" " + piece + b" " for piece in pieces]
    lines = sorted({line + b"\n" for text in texts for line in text.splitlines()})

    def make(rng: Random) -> bytes:
        text = rng.choice(texts[-6:] if rng.random() < 0.8 else texts)
        if rng.random() < 0.2:
            found = text.splitlines(keepends=True)
            found.insert(rng.randrange(len(found) + 1), rng.choice(lines))
            text = b"".join(found)
        return mutate_bytes(rng, text, lines, tokens)

    def read(data: bytes) -> str:
        found = read_grammar_text(data.decode("utf-8", "surrogateescape"))
        if found.core is None:
            errors = [item for item in found.diagnostics if item.severity == "error"]
            return errors[0].code
        read_core(found.core)  # what the front end makes, the kernel can read
        return "core"

    return Target(make=make, read=read)


TARGETS: Mapping[str, Callable[[], Target]] = {
    "artifact": artifact_target,
    "ledger": ledger_target,
    "grammar": grammar_target,
}
