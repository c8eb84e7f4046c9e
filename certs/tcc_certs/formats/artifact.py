"""The artifact file: its manifest, its columns, and the automaton in the columns.

Normative text: docs/spec/artifact.md, sections 1 to 3.  The reader checks the container, the
manifest, and the shapes and digests of the columns.  :mod:`tcc_certs.kernel` checks their content.
The reader checks the schema and the critical features first, so that it declines a file of another
version instead of calling it broken.  The features decide which members the manifest has.  Cost:
one BLAKE3 pass over the columns, linear in the manifest; no column is copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from itertools import compress
from typing import Any

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats import schema
from tcc_certs.formats.codec import Json, blake, decode, parse_decimal
from tcc_certs.formats.container import Tensor, read_container
from tcc_certs.formats.schema import Form, Known, Table, as_list, dropped, read, row, word

_FORM, _VALUE = Code.MANIFEST_SCHEMA, Code.MANIFEST_VALUE
SCHEMA = "tcc.artifact/2"
_HEX = re.compile(r"[0-9a-f]{64}")
_MAX_TILT = 64
_MAX_STATES = 1 << 32
LEAF_POLICY: Mapping[str, Json] = {"name": "tcc.leaf", "version": 1}
CYCLIC, GATE, NONDETERMINISTIC, RELAXED, ROUNDED = (
    "cyclic", "gate", "nondeterministic", "relaxed", "rounded",
)  # fmt: skip
FEATURES = (CYCLIC, GATE, NONDETERMINISTIC, RELAXED, ROUNDED)
# Pairs of features that exclude each other.
_EXCLUDED = ({GATE, ROUNDED}, {CYCLIC, NONDETERMINISTIC})
MAX_ROUND_BITS = 63
NEEDED_FOR_RUNS = "race counts: an artifact that was compiled without --for gate"
NEEDED_FOR_COUNTS = "plans of bounded length: add `limit depth <= N` and compile without --for gate"
ENDLESS = "plans without a bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of an artifact.

    Attributes:
        grammar, version: the grammar's name and version.
        beta: inverse temperature, exact: numerator and decimal places.
        tilt, fraction_bits: B and F of the weights.
        states, edges, calls: sizes n, e, c.
        root: S(root), 32 bytes.
        cost_max: the greatest cost_high of a call, nano-units.
        root_document: J, the document of the root context.
        columns: column name -> BLAKE3 of its raw bytes; every column except ``manifest``.
        nondeterministic: a call may lead from one state to several; counts are of derivations.
        relaxed: the numbers of the statements that the automaton omits and a run enforces,
            increasing.
        round_counts: bits of the mantissas of rounded race counts; None: the counts are exact.
        gate: the artifact is for a gate, not for a run: no race counts, and plans are rounded up.
        cyclic: the automaton has cycles, so plans have no bound: no counts and no ranks.
    """

    grammar: str
    version: str
    beta: tuple[int, int]
    tilt: int
    fraction_bits: int
    states: int
    edges: int
    calls: int
    root: bytes
    cost_max: int
    root_document: Mapping[str, Json]
    columns: Mapping[str, bytes] = field(default_factory=dict)
    nondeterministic: bool = False
    relaxed: tuple[int, ...] = ()
    round_counts: int | None = None
    gate: bool = False
    cyclic: bool = False

    @property
    def critical(self) -> tuple[str, ...]:
        """The features that a reader must know, in order."""
        rounded = self.round_counts is not None
        held = self.cyclic, self.gate, self.nondeterministic, bool(self.relaxed), rounded
        return tuple(compress(FEATURES, held))

    @property
    def counts(self) -> str:
        """The kind of the file's counts: ``exact``, ``upper`` (upper bounds) or ``none``."""
        return _counted(self.critical)


def read_manifest(data: bytes) -> Manifest:
    """Return the manifest in `data`.

    Raises:
        Rejected: B1xx its JSON.  D101 an unknown critical feature.  D102 another schema.  M101 a
            member is missing, unknown or of the wrong type.  M102 a value is out of range.  C701
            another leaf policy.
    """
    value = schema.as_mapping(decode(data, "manifest"), "manifest", _FORM)
    head = schema.read_rows(HEAD, value, "manifest", _FORM, {})
    critical = head["critical"]
    made = read(MANIFEST[RELAXED in critical], value, "manifest", _FORM, head, tuple(head))
    nested = [made.pop(name) for name in ("grammar", "options", "leaf_policy")]
    made |= {name: name in critical for name in (CYCLIC, GATE, NONDETERMINISTIC)}
    return Manifest(**nested[0], **nested[1], **nested[2], **made)


def _schema(value: Json, path: str, _: Code, __: Known) -> None:
    shown = value if isinstance(value, str) else "none"
    ensure(value == SCHEMA, Code.UNKNOWN_VERSION, path, SCHEMA, shown)


def _critical(value: Json, path: str, code: Code, _: Known) -> Sequence[Json]:
    """Read the names of the critical features, which must all be known."""
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Rejected(code, path, "a list of names", value)
    unknown = [name for name in value if name not in FEATURES]
    ensure(not unknown, Code.UNKNOWN_FEATURE, path, FEATURES, unknown)
    schema.ensure_increasing(value, path, _VALUE)
    for pair in _EXCLUDED:
        ensure(not pair <= set(value), _VALUE, path, "one of " + " and ".join(sorted(pair)), "both")
    gate = CYCLIC not in value or GATE in value
    ensure(gate, _VALUE, path, f"{CYCLIC} with {GATE}", f"{CYCLIC} without it")
    return value


def _text(form: Form) -> Form:
    def read_text(value: Json, path: str, code: Code, known: Known) -> Any:
        if not isinstance(value, str):
            raise Rejected(code, _short(path), "a text", value)
        return form(value, path, _VALUE, known)

    return read_text


def _size(low: int, high: int) -> Form:
    def read_size(value: Json, path: str, code: Code, _: Known) -> int:
        if type(value) is not int:
            raise Rejected(code, _short(path), "an integer", value)
        ensure(low <= value <= high, _VALUE, _short(path), f"{low}..{high}", value)
        return value

    return read_size


def _short(path: str) -> str:
    return f"manifest: {path.rpartition('.')[2]}"


def _beta(value: str, path: str, code: Code, _: Known) -> tuple[int, int]:
    beta = parse_decimal(value, path, code)
    ensure(beta[0] >= 0, code, path, "at least 0", beta[0])
    return beta


def _digest(value: Json, path: str, code: Code, *_: object) -> bytes:
    if not isinstance(value, str) or _HEX.fullmatch(value) is None:
        raise Rejected(code, path, "64 lower-case hex digits", value)
    return bytes.fromhex(value)


def _digests(value: Json, path: str, code: Code, _: Known) -> Mapping[str, bytes]:
    items = schema.as_mapping(value, path, code).items()
    return {name: _digest(digest, f"{path}.{name}", code) for name, digest in items}


def _counted(critical: Sequence[str]) -> str:
    if CYCLIC in critical:
        return "none"
    return "upper" if critical else "exact"


def _counts(value: Json, path: str, code: Code, known: Known) -> None:
    require(_counted(known["critical"]), value, code, path)


def _options(value: Json, path: str, code: Code, known: Known) -> dict[str, Any]:
    return read(OPTIONS[ROUNDED in known["critical"]], value, path, code, known)


def _numbers(value: Json, path: str, code: Code, _: Known) -> tuple[int, ...]:
    """Read numbers of statements, at least one; C8 checks that the core has them."""
    items = as_list(value, path, code)
    numbers = [schema.as_whole(item, path, code, _MAX_STATES) for item in items]
    ensure(bool(numbers), _VALUE, path, "at least one statement", "none")
    schema.ensure_increasing(numbers, path, _VALUE)
    return tuple(numbers)


HEAD: Table = (
    row("schema", _schema),
    row("critical", _critical),
)
GRAMMAR: Table = (
    row("version", _text(schema.as_version)),
    row("name", _text(schema.as_name), "grammar"),
)
_EXACT: Table = (
    row("beta", _text(_beta)),
    row("tilt", _size(0, _MAX_TILT)),
    row("fraction_bits", _size(0, _MAX_TILT)),
)
# By whether counts are rounded.
OPTIONS = {False: _EXACT, True: (*_EXACT, row("round_counts", _size(1, MAX_ROUND_BITS)))}
POLICY: Table = (
    *(dropped(row(name, word(it), code=Code.LEAF_POLICY)) for name, it in LEAF_POLICY.items()),
    row("root", schema.as_mapping, "root_document"),
)
_MEMBERS: Table = (
    row("grammar", schema.object_of(GRAMMAR, dict)),
    row("options", _options),
    row("leaf_policy", schema.object_of(POLICY, dict)),
    dropped(row("counts", _counts, code=_VALUE)),
    row("columns", _digests),
    row("states", _size(1, _MAX_STATES)),
    row("edges", _size(0, _MAX_STATES)),
    row("calls", _size(0, _MAX_STATES)),
    row("root", _digest),
    row("cost_max", schema.as_large, code=_VALUE),
)
# By whether statements are relaxed.
MANIFEST = {False: _MEMBERS, True: (*_MEMBERS, row(RELAXED, _numbers))}


# Sizes are states, edges and calls; "+1" is states + 1, "-1" is states - 1; "*" is any size, and
# "limbs" is any size of at least 1.
COLUMNS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "accept": ("U8", ("states",)),
    "call_cost_high": ("I64", ("calls",)),
    "call_cost_low": ("I64", ("calls",)),
    "call_epsilon": ("U64", ("calls",)),
    "call_latency_ms": ("U64", ("calls",)),
    "call_price": ("U64", ("calls",)),
    "call_text": ("U8", ("*",)),
    "call_weight": ("U64", ("calls",)),
    "calls_to_go": ("U32", ("states",)),
    "core": ("U8", ("*",)),
    "cost_to_go": ("I64", ("states",)),
    "edge_call": ("U32", ("edges",)),
    "edge_start": ("U64", ("+1",)),
    "edge_target": ("U32", ("edges",)),
    "manifest": ("U8", ("*",)),
    "place": ("U32", ("states",)),
    "plans": ("U64", ("states", "limbs")),
    "plans_exponent": ("U32", ("states",)),
    "plans_mantissa": ("U64", ("states",)),
    "race_count": ("U64", ("states", "limbs")),
    "race_exponent": ("U32", ("states",)),
    "race_mantissa": ("U64", ("states",)),
    "rank": ("U32", ("states",)),
    "residual_to_go": ("I64", ("states",)),
    "split_at": ("U32", ("-1",)),
    "split_by": ("U32", ("-1",)),
    "split_call": ("U32", ("-1",)),
    "state_digest": ("U8", ("states", "32")),
    "tools": ("U8", ("*",)),
}
# The columns of counts.  Rounded race counts have two columns.  Exact race counts have one column,
# or none if they equal `plans`.  For a gate there are no race counts, and rounded plans have two
# columns.
_ROUNDED = frozenset({"plans", "race_exponent", "race_mantissa"})
_GATE = frozenset({"plans_exponent", "plans_mantissa"})
_COUNTS = frozenset({"race_count"}) | _ROUNDED | _GATE
# With cycles, states have no counts, ranks, bounds or digests.
_CYCLIC = frozenset({"calls_to_go", "place", "split_at", "split_by", "split_call"})
_RANKED = frozenset({"cost_to_go", "rank", "residual_to_go", "state_digest"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFile:
    """An artifact with a valid container, manifest, shapes and column digests.

    Attributes:
        digest: the artifact digest, BLAKE3 of the manifest's bytes.
        manifest: the manifest's values.
        columns: every column by name, as views of the bytes that were read.
    """

    digest: bytes
    manifest: Manifest
    columns: Mapping[str, Tensor]


def read_artifact(data: bytes | memoryview, *, digests: bool = True) -> ArtifactFile:
    """Return the columns and the manifest of an artifact.

    Args:
        data: the whole file.
        digests: False skips the check of the columns' digests, for a reader that trusts the disk.

    Raises:
        Rejected: B1xx, B2xx the bytes.  M101, M102, C701, D101, D102 the manifest.  M201 a column
            is missing or unknown.  M202 a dtype or a shape.  M203 a digest.
    """
    columns = read_container(data)
    if "manifest" not in columns:
        raise Rejected(Code.COLUMN_SET, "header", "a manifest", "none")
    raw = bytes(columns["manifest"].data)
    manifest = read_manifest(raw)
    _check_names(columns.keys(), manifest)
    for name in sorted(columns):
        _check_shape(name, columns[name], manifest)
    if digests:
        for name, digest in manifest.columns.items():
            found = blake(columns[name].data).hex()
            require(digest.hex(), found, Code.COLUMN_DIGEST, f"manifest.columns.{name}")
    return ArtifactFile(digest=blake(raw), manifest=manifest, columns=columns)


def _check_names(names: Set[str], manifest: Manifest) -> None:
    """Check that the columns are exactly those that the manifest's features require."""
    required, optional = set(COLUMNS) - _COUNTS - _CYCLIC, set()
    if manifest.cyclic:
        required = required - _RANKED | _CYCLIC
    elif manifest.gate:
        required |= _GATE
    elif manifest.round_counts is not None:
        required |= _ROUNDED
    else:
        required, optional = required | {"plans"}, {"race_count"}
    missing = sorted(required - names)
    ensure(not missing, Code.COLUMN_SET, "header", "every column", f"without {missing}")
    extra = sorted(names - required - optional)
    ensure(not extra, Code.COLUMN_SET, "header", "no other column", extra)
    named = sorted(names - {"manifest"})
    require(named, sorted(manifest.columns), Code.COLUMN_SET, "manifest.columns")


def _check_shape(name: str, tensor: Tensor, manifest: Manifest) -> None:
    dtype, dimensions = COLUMNS[name]
    require(dtype, tensor.dtype, Code.COLUMN_SHAPE, f"header.{name}.dtype")
    shape = shape_of(dimensions, tensor.shape, manifest)
    require(shape, tensor.shape, Code.COLUMN_SHAPE, f"header.{name}.shape")


def shape_of(
    dimensions: Sequence[str], shape: Sequence[int], manifest: Manifest
) -> tuple[int, ...]:
    """Return the shape that the manifest requires; free sizes are copied from `shape`."""
    sizes = {
        "states": manifest.states,
        "edges": manifest.edges,
        "calls": manifest.calls,
        "+1": manifest.states + 1,
        "-1": manifest.states - 1,
        "32": 32,
        "*": shape[0],
        "limbs": max(1, shape[-1]),
    }
    return tuple(sizes[dimension] for dimension in dimensions)


def unpack_limbs(tensor: Tensor) -> list[int]:
    """Return counts that are stored as rows of 64-bit limbs, the least first."""
    if tensor.shape[1] == 1:
        return tensor.items().tolist()
    size = 8 * tensor.shape[1]
    raw = bytes(tensor.data)
    return [int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Automaton:
    """States 0 .. n-1 as compressed rows: views of columns that were not checked yet.

    Attributes:
        edge_start: [n+1]; the edges of q are ``edge_start[q] .. edge_start[q+1]-1``.
        edge_call: [e], index of the call.
        edge_target: [e], number of the target state.
        accept: [n], 1 if a plan may stop.
        rank: [n], most calls that may still follow; empty if there are cycles.
        calls_to_go: [n], fewest calls after which a plan may stop; empty without cycles.
    """

    edge_start: Sequence[int]
    edge_call: Sequence[int]
    edge_target: Sequence[int]
    accept: Sequence[int]
    rank: Sequence[int] = ()
    calls_to_go: Sequence[int] = ()

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.accept)

    @property
    def cyclic(self) -> bool:
        """True if it may have cycles."""
        return len(self.calls_to_go) > 0

    @property
    def root(self) -> int:
        """The state of the empty prefix: the first state if there are cycles, else the last."""
        return 0 if self.cyclic else len(self.accept) - 1

    def edges(self, q: int) -> Iterator[tuple[int, int]]:
        """Return the edges of state `q` as (call, target), in call order."""
        span = slice(self.edge_start[q], self.edge_start[q + 1])
        return zip(self.edge_call[span], self.edge_target[span], strict=True)


def require_race_counts(manifest: Manifest) -> None:
    """Decline an artifact that cannot be used for a run.

    Raises:
        Rejected: D204 its plans have no bound; D203 it is for a gate, and has no race counts.
    """
    path = "manifest.critical"
    if manifest.cyclic:
        raise Rejected(Code.ENDLESS, path, NEEDED_FOR_COUNTS, ENDLESS)
    ensure(not manifest.gate, Code.NO_RACE, path, NEEDED_FOR_RUNS, "for a gate")


def view(file: ArtifactFile) -> Automaton:
    """Return the automaton in the columns of `file`, without a copy."""
    columns = file.columns
    names = [one.name for one in fields(Automaton) if one.name in columns]
    return Automaton(**{name: columns[name].items() for name in names})
