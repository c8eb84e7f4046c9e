"""What is fuzzed: the readers of artifacts, of ledgers, of grammars and of answers.

A target turns a well-formed input into another one that is nearly so, and reads inputs.  What
reading answers with is a word for the tally; any exception is a finding.  Half of the inputs have
edited bytes; the others are taken apart, changed where they mean something, and sealed again, so
that no digest and no chain gives them away.  Now and then an input is a large one, of 1 KB to some
hundred (`tests/campaigns/large`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from tcc_certs.corecheck.check import check_core
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import blake, encode
from tcc_certs.formats.container import ITEM_SIZE, Tensor, read_container, write_container
from tcc_certs.formats.ledger import FIRST_HEAD, seal
from tcc_certs.kernel import check
from tcc_certs.policy.reader import core_json, read_core
from tcc_certs.replay.validation import validate
from tcc_compiler.frontend import read_grammar_text
from tests.campaigns import answers, seeds, sessions
from tests.campaigns.large import (
    artifacts as large_artifacts,
    grammars as large_grammars,
    ledgers as large_ledgers,
)
from tests.campaigns.mutate import TEXTS, TOKENS, mutate_bytes, mutate_json
from tests.oracle_ledger.writer import opening_of, with_run_id

EXAMPLES = Path(__file__).parents[2] / "grammars"
TEXT_COLUMNS = ("core", "core", "core", "tools", "call_text")
CORE_PAIRS, CORE_STEPS = 200, 5_000  # of the check against the core
# One input in so many is a large one: so few that their mean stays near a millisecond.
RARELY = {"artifact": 20, "ledger": 20, "grammar": 300, "session": 40, "answer": 200}


@dataclass(frozen=True, kw_only=True)
class Target:
    """`seeds` are well-formed inputs, `mutate` changes one, `read` gives a word for the tally.

    `large` makes a large input, one time in `rarely`.
    """

    seeds: Sequence[bytes]
    mutate: Callable[[Random, bytes], bytes]
    read: Callable[[bytes], str]
    large: Callable[[Random], bytes] | None = None
    rarely: int = 1

    def make(self, rng: Random) -> bytes:
        """An input of its own."""
        if self.large is not None and rng.randrange(self.rarely) == 0:
            return self.large(rng)
        return self.mutate(rng, rng.choice(self.seeds))


class Passed(Exception):
    """A reader passed what by its form alone is not to be passed."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """An artifact taken apart: columns as (dtype, shape, bytes), their places in the file.

    `hexes` says where in the file the hex digest of a column stands, `body` where the column does.
    """

    manifest: Any
    columns: Mapping[str, tuple[str, tuple[int, ...], bytes]]
    body: Mapping[str, int]
    hexes: Mapping[str, int]
    numeric: Sequence[str]


@lru_cache(1 << 12)
def parts(data: bytes) -> Parts | None:
    """The parts of an artifact; None of bytes that are none."""
    try:
        tensors = read_container(data)
        raw = bytes(tensors["manifest"].data)
        manifest = json.loads(raw)
        names = sorted(set(tensors) & set(manifest["columns"]))
        columns = {n: (tensors[n].dtype, tensors[n].shape, bytes(tensors[n].data)) for n in names}
        offsets = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (Rejected, ValueError, LookupError, TypeError, RecursionError):
        return None
    start = 8 + int.from_bytes(data[:8], "little")
    body = {name: start + offsets[name]["data_offsets"][0] for name in names}
    text = start + offsets["manifest"]["data_offsets"][0]
    found = {
        name: raw.find(f'"{name}":"{blake(columns[name][2]).hex()}"'.encode()) for name in names
    }
    hexes = {name: text + at + len(name) + 4 for name, at in found.items() if at >= 0}
    numeric = [n for n in sorted(hexes) if n not in TEXT_COLUMNS and columns[n][2]]
    return Parts(manifest=manifest, columns=columns, body=body, hexes=hexes, numeric=numeric)


def artifact_target() -> Target:
    """Artifacts: bytes and containers edited, columns and JSON edited and sealed again."""
    known = [*seeds.artifacts(), *seeds.kept("artifact")]
    taken = [found for data in known if (found := parts(data)) is not None]
    donors = [_json(f.columns[n][2]) for f in taken for n in ("core", "tools") if n in f.columns]
    donors += [found.manifest for found in taken]

    def mutate(rng: Random, data: bytes) -> bytes:
        found = parts(data)
        chance = rng.random()
        if found is None or chance < 0.5:
            return mutate_bytes(rng, data, known, TOKENS)
        if chance < 0.75 and found.numeric:
            return _items(rng, data, found)
        columns, manifest = dict(found.columns), found.manifest
        if chance < 0.82:
            manifest = mutate_json(rng, manifest, donors)
        elif chance < 0.88:
            _swap_columns(rng, columns, rng.choice(taken).columns)
        else:
            _edit_text(rng, columns, donors)
        return _sealed(manifest, columns)

    def large(rng: Random) -> bytes:
        data = rng.choice(large_artifacts.artifacts())
        found, chance = parts(data), rng.random()
        if found is None or chance < 0.1:
            return large_artifacts.hostile_frame(rng)
        if chance < 0.4:
            columns = dict(found.columns)
            name, raw = large_artifacts.hostile_text(rng, columns)
            if name != "manifest":
                return _sealed(found.manifest, {**columns, name: ("U8", (len(raw),), raw)})
            return _framed(raw, columns)
        if chance < 0.6:
            return large_artifacts.cut(rng, data)
        return _items(rng, data, found) if chance < 0.9 else mutate(rng, data)

    return Target(
        seeds=known, mutate=mutate, read=read_artifact, large=large, rarely=RARELY["artifact"]
    )


def read_artifact(data: bytes) -> str:
    """The first code of an artifact, with the check against its core."""
    try:
        check_core(check(data), pairs=CORE_PAIRS, steps=CORE_STEPS)
    except Rejected as refusal:
        return refusal.code.value
    return "VALID"


def _items(rng: Random, data: bytes, found: Parts) -> bytes:
    """One or two items of numeric columns changed, and their digests with them."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(found.numeric)
        dtype, _, raw = found.columns[name]
        size = ITEM_SIZE[dtype]
        start, bound = found.body[name], found.body[name] + len(raw)
        at = start + rng.randrange(len(raw) // size) * size
        low = int.from_bytes(changed[at : at + size], "little")
        value = rng.choice((0, 1, 2, 255, 1 << 31, 1 << 63, -1, rng.getrandbits(64), low ^ 128,
                            low + 1, low - 1, low + 1, low - 1)) % (1 << 8 * size)  # fmt: skip
        changed[at : at + size] = value.to_bytes(size, "little")
        hexes = found.hexes[name]
        changed[hexes : hexes + 64] = blake(bytes(changed[start:bound])).hex().encode()
    return bytes(changed)


def _swap_columns(rng: Random, columns: dict[str, Any], other: Mapping[str, Any]) -> None:
    """A column dropped, renamed, taken from another artifact, of another type, or other bytes."""
    name = rng.choice(sorted(columns))
    dtype, shape, raw = columns[name]
    match rng.randrange(6):
        case 0:
            del columns[name]
        case 1:
            columns[rng.choice(["zzz", *sorted(other)])] = columns[name]
        case 2 | 3 if name in other:
            columns[name] = other[name]
        case 4:
            columns[name] = rng.choice(sorted(ITEM_SIZE)), shape, raw
        case _:
            raw = mutate_bytes(rng, raw, [raw, *(c[2] for c in other.values())], TOKENS)
            columns[name] = dtype, (len(raw) // ITEM_SIZE[dtype], *shape[1:]), raw


def _edit_text(rng: Random, columns: dict[str, Any], donors: Sequence[Any]) -> None:
    name = rng.choice([n for n in TEXT_COLUMNS if n in columns] or sorted(columns))
    raw = columns[name][2]
    value = _json(raw)
    raw = encoded(mutate_json(rng, value, donors))
    columns[name] = "U8", (len(raw),), raw


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return [0]


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
    return _framed(encoded(manifest), columns)


def _framed(raw: bytes, columns: Mapping[str, tuple[str, tuple[int, ...], bytes]]) -> bytes:
    """The file of these columns with that text as its manifest."""
    tensors = {name: Tensor(dtype=d, shape=s, data=r) for name, (d, s, r) in columns.items()}
    return write_container({**tensors, "manifest": Tensor(dtype="U8", shape=(len(raw),), data=raw)})


def ledger_target() -> Target:
    """Ledgers of small artifacts: bytes edited, records edited and chained again."""
    raced = seeds.raced()
    budgeted = seeds.budgeted()
    runs = [*seeds.ledgers(raced), *(records for _, records in budgeted)]
    known = [b"".join(chained(records, 0)) for records in runs] + seeds.kept("ledger")
    donors = [record for records in runs for record in records]
    artifacts = [*raced.values(), *(artifact for artifact, _ in budgeted)]
    by_digest = {item.file.digest.hex().encode(): item for item in artifacts}
    relaxed, exact, default = raced["relaxed"], raced["exact"], raced["line"]
    closed = large_ledgers.closed_early(raced, seeds.RUNS)
    longer = [(run, b"".join(chained(run, 0))) for run in seeds.longer()]

    def large(rng: Random) -> bytes:
        records, data = rng.choice(longer)
        chance = rng.random()
        if chance < 0.3:
            return mutate(rng, data)
        if chance < 0.5:
            return large_ledgers.hostile_line(rng, data.splitlines(keepends=True))
        change = rng.choice(
            (large_ledgers.blocks, large_ledgers.recovered, large_ledgers.long_member)
        )
        return b"".join(chained(change(rng, records), 0))

    def mutate(rng: Random, data: bytes) -> bytes:
        if rng.random() < 0.08:
            return b"".join(chained(large_ledgers.carried_on(rng, rng.choice(closed)), 0))
        found = None if rng.random() < 0.45 else taken_apart(data)
        if not found:
            return mutate_bytes(rng, data, known, TOKENS)
        records, heads, lines = found
        at = rng.randrange(len(records))
        changed = list(records[at:])
        match rng.randrange(11):
            case 0:
                del changed[0]
            case 1:
                changed.insert(0, rng.choice(donors))
            case 2:
                changed[0] = rng.choice(donors)
            case 3:
                changed = changed[:1]
            case 4 if len(changed) > 1:
                changed[0], changed[1] = changed[1], changed[0]
            case 5:
                changed = large_ledgers.blocks(rng, changed)
            case _:
                changed[0] = mutate_json(rng, records[at], donors)
        if at == 0 and changed and isinstance(changed[0], dict) and rng.random() < 0.9:
            changed[0] = _named(changed[0])
        return b"".join([*lines[:at], *chained(changed, heads[at])])

    def read(data: bytes) -> str:
        head, last = data[:2000], data[data.rfind(b"\n", 0, -1) + 1 :]
        artifact = next((item for digest, item in by_digest.items() if digest in head), default)
        told: dict[str, Any] = {}
        if b'"beacon"' in head:
            told = {"beacon": seeds.BEACON, "nonce": seeds.NONCE, "opening": _opening(head)}
        elif b'"opening_salt"' not in last:
            told = {"seed": bytes(32)}
        elif artifact is relaxed:
            told = {"counts": exact}
        chunks = (
            [data[i : i + 200] for i in range(0, len(data), 200)] if len(data) % 8 == 0 else data
        )
        found = validate(chunks, artifact, **told)
        if not found.findings:
            closes = data.count(b'"kind":"close"')
            if found.verdict == 0 and (closes != 1 or b'"kind":"close"' not in last):
                raise Passed("a ledger that does not end with its one close")
            return f"verdict {int(found.verdict)}"
        return str(found.findings[0].code.value)

    return Target(seeds=known, mutate=mutate, read=read, large=large, rarely=RARELY["ledger"])


@lru_cache(1 << 12)
def taken_apart(data: bytes) -> tuple[list[Any], list[bytes], list[bytes]] | None:
    """Records, the head before each, and the lines; None of what is no ledger."""
    records, heads, lines = [], [FIRST_HEAD], data.splitlines(keepends=True)
    for line in lines:
        value = _json(line)
        if not isinstance(value, dict):
            return None
        value.pop("~", None)
        made = chained([value], heads[-1])
        records.append(value)
        heads.append(blake(heads[-1] + encoded(value)))
        if made[0] != line:
            return None
    return (records, heads, lines) if records else None


def chained(records: Sequence[Any], head: bytes | int) -> list[bytes]:
    """The chain over records of any shape, after the line whose head is given."""
    lines = []
    link = head if isinstance(head, bytes) else FIRST_HEAD
    for record in records:
        body = record if isinstance(record, dict) else {"kind": record}
        try:
            line, link = seal(body, link)
        except (TypeError, ValueError):
            line = json.dumps(body, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        lines.append(line)
    return lines


def _named(record: dict[str, Any]) -> dict[str, Any]:
    """The header with its run id, where it can have one."""
    try:
        return with_run_id(record)
    except (TypeError, ValueError):
        return record


def _opening(head: bytes) -> bytes:
    """O of a header, as whoever keeps it would have it; anything, where the header is none."""
    try:
        return opening_of(json.loads(head.splitlines()[0]))
    except (ValueError, LookupError, TypeError, RecursionError):
        return bytes(32)


def grammar_target() -> Target:
    """Texts of grammars: characters, tokens and lines edited."""
    examples = [path.read_bytes() for path in sorted(EXAMPLES.rglob("*.tcg"))]
    known = [*seeds.GRAMMARS, *seeds.kept("grammar")]
    pieces = sorted({piece for text in (*known, *examples) for piece in text.split()})
    tokens = [*TOKENS, *(t.encode("utf-8", "surrogatepass") for t in TEXTS)]
    tokens += [b" " + piece + b" " for piece in pieces]
    lines = sorted({line + b"\n" for text in (*known, *examples) for line in text.splitlines()})

    def mutate(rng: Random, data: bytes) -> bytes:
        if rng.random() < 0.25:
            found = data.splitlines(keepends=True)
            found.insert(rng.randrange(len(found) + 1), rng.choice(lines))
            data = b"".join(found)
        if rng.random() < 0.4:
            return _reworded(rng, data, pieces)
        return mutate_bytes(rng, data, lines, tokens)

    # One of full size is enough among the seeds: it takes as long as thirty others.
    return Target(
        seeds=[*known, min(examples, key=len)],
        mutate=mutate,
        read=read_grammar,
        large=large_grammars.large_grammar,
        rarely=RARELY["grammar"],
    )


def _reworded(rng: Random, data: bytes, pieces: Sequence[bytes]) -> bytes:
    """One to three words exchanged, dropped or doubled: nearer to a grammar than edited bytes."""
    words = data.replace(b"\n", b" \n ").split(b" ")
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(len(words))
        match rng.randrange(5):
            case 0:
                words[at] = b""
            case 1:
                words.insert(at, words[rng.randrange(len(words))])
            case 2:
                words[at] = words[rng.randrange(len(words))]
            case _:
                words[at] = rng.choice(pieces)
    return b" ".join(words)


def read_grammar(data: bytes) -> str:
    """The first error of a grammar's text; the kernel reads the core of one that has none."""
    found = read_grammar_text(data.decode("utf-8", "surrogateescape"))
    if found.core is None:
        return next(item.code for item in found.diagnostics if item.severity == "error")
    read_core(encode(core_json(found.core)))
    return "core"


def session_target() -> Target:
    """Ledgers of sessions over one small artifact."""
    known = sessions.known() + seeds.kept("session")
    donors = [record for name in sessions.NAMES for record in sessions.shape(name)]
    donors += sessions.by_models()
    longer = sessions.longer()
    return Target(
        seeds=known,
        mutate=lambda rng, data: sessions.mutate(rng, data, known, donors),
        read=sessions.read,
        large=lambda rng: sessions.large(rng, longer),
        rarely=RARELY["session"],
    )


def answer_target() -> Target:
    """Answers of tools, and the pointers that fields are read at."""
    known = answers.seeds()
    return Target(
        seeds=known,
        mutate=lambda rng, data: answers.mutate(rng, data, known),
        read=answers.read,
        large=answers.large,
        rarely=RARELY["answer"],
    )


TARGETS: Mapping[str, Callable[[], Target]] = {
    "artifact": artifact_target,
    "ledger": ledger_target,
    "grammar": grammar_target,
    "session": session_target,
    "answer": answer_target,
}
