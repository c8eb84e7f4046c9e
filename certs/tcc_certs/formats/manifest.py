"""The manifest of an artifact: canonical JSON with exactly the members of the specification.

Normative text: docs/spec/artifact.md, section 3.  What would make a later version legal (version,
critical features) is looked at first, so that a newer file is declined and not called broken.
The features decide which members there are, and whether the counts are bounds.
Cost: linear in its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json, decode, read_large
from tcc_certs.formats.decimals import parse_decimal
from tcc_certs.formats.schema import as_list, as_name, as_whole, ensure_increasing, ensure_version

_MEMBERS = [
    "columns", "cost_max", "counts", "calls", "critical", "edges", "format", "grammar",
    "leaf_policy", "options", "root", "states", "version",
]  # fmt: skip
STATEMENTS = ["forbids", "limits", "requires"]
_HEX = re.compile(r"[0-9a-f]{64}")
_MAX_TILT = 64
_MAX_STATES = 1 << 32
LEAF_POLICY: Mapping[str, Json] = {"name": "tcc.leaf", "version": 1}
NONDETERMINISTIC, RELAXED, ROUNDED = "nondeterministic", "relaxed", "rounded"
FEATURES = (NONDETERMINISTIC, RELAXED, ROUNDED)
MAX_ROUND_BITS = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """Statements of the core that its automaton leaves to the run: increasing indices, some."""

    forbids: tuple[int, ...] = ()
    limits: tuple[int, ...] = ()
    requires: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What an artifact says of itself.

    Attributes:
        grammar, version: the grammar's name and version.
        beta: inverse temperature, exact: numerator and decimal places.
        tilt, fraction_bits: B and F of the weights.
        states, edges, calls: sizes n, e, c.
        root: S(root), 32 bytes.
        cost_max: the greatest cost_high of a call, nano-units.
        root_document: J, the document of the root context.
        columns: column name -> BLAKE3 of its raw bytes; every column but ``manifest``.
        nondeterministic: a call may lead from one state to several; counts are of derivations.
        relaxed: the statements that the automaton leaves out; None where it leaves none.
        round_counts: bits of the mantissas of rounded race counts; None where they are exact.
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
    relaxed: Relaxed | None = None
    round_counts: int | None = None

    @property
    def critical(self) -> tuple[str, ...]:
        """The features that a reader must know, in order."""
        held = self.nondeterministic, self.relaxed is not None, self.round_counts is not None
        return tuple(compress(FEATURES, held))

    @property
    def counts(self) -> str:
        """``exact``, or ``upper`` where counts are bounds from above."""
        return "upper" if self.critical else "exact"


def read_manifest(data: bytes) -> Manifest:
    """The manifest in `data`.

    Raises:
        Rejected: B1xx its JSON; D101 an unknown critical feature, D102 another version; M101 a
            member that is missing, unknown or of the wrong type; M102 a value out of range; C701
            another leaf policy.
    """
    value = decode(data, "manifest")
    top = _object(value, "manifest")
    _check_version(top)
    critical = _critical(top.get("critical"))
    relaxed, rounded = RELAXED in critical, ROUNDED in critical
    members = [*_MEMBERS, RELAXED] if relaxed else _MEMBERS
    require(sorted(members), sorted(top), Code.MANIFEST_SCHEMA, "manifest")
    grammar = _members(top, "grammar", ["name", "version"])
    settings = ["beta", "fraction_bits", *(["round_counts"] if rounded else []), "tilt"]
    options = _members(top, "options", settings)
    policy = _members(top, "leaf_policy", ["name", "root", "version"])
    counts = "upper" if critical else "exact"
    require(counts, top["counts"], Code.MANIFEST_VALUE, "manifest.counts")
    for name, value in LEAF_POLICY.items():
        _require_exactly(value, policy[name], Code.LEAF_POLICY, f"manifest.leaf_policy.{name}")
    beta = parse_decimal(_text(options, "beta"), "manifest.options.beta", Code.MANIFEST_VALUE)
    ensure(beta[0] >= 0, Code.MANIFEST_VALUE, "manifest.options.beta", "at least 0", beta[0])
    columns = _object(top["columns"], "manifest.columns")
    version = _text(grammar, "version")
    ensure_version(version, "manifest.grammar.version", Code.MANIFEST_VALUE)
    return Manifest(
        grammar=as_name(_text(grammar, "name"), "manifest.grammar.name", Code.MANIFEST_VALUE),
        version=version,
        beta=beta,
        tilt=_size(options, "tilt", 0, _MAX_TILT),
        fraction_bits=_size(options, "fraction_bits", 0, _MAX_TILT),
        states=_size(top, "states", 1, _MAX_STATES),
        edges=_size(top, "edges", 0, _MAX_STATES),
        calls=_size(top, "calls", 0, _MAX_STATES),
        root=_digest(top["root"], "manifest.root"),
        cost_max=read_large(top["cost_max"], "manifest.cost_max", Code.MANIFEST_VALUE),
        root_document=_object(policy["root"], "manifest.leaf_policy.root"),
        columns={name: _digest(d, f"manifest.columns.{name}") for name, d in columns.items()},
        nondeterministic=NONDETERMINISTIC in critical,
        relaxed=_relaxed(top) if relaxed else None,
        round_counts=_size(options, "round_counts", 1, MAX_ROUND_BITS) if rounded else None,
    )


def _check_version(top: Mapping[str, Json]) -> None:
    require("tcca", top.get("format"), Code.MANIFEST_SCHEMA, "manifest.format")
    version = top.get("version")
    if not isinstance(version, list) or [type(part) for part in version] != [int, int]:
        raise Rejected(Code.MANIFEST_SCHEMA, "manifest.version", "two integers", version)
    ensure(
        version[0] == 1 and version[1] <= 0,
        Code.UNKNOWN_VERSION,
        "manifest.version",
        "1.0",
        version,
    )
    require([1, 0], version, Code.MANIFEST_VALUE, "manifest.version")


def _critical(value: Json | None) -> Sequence[Json]:
    """The names of the critical features, each of which is known here."""
    path = "manifest.critical"
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Rejected(Code.MANIFEST_SCHEMA, path, "a list of names", value)
    unknown = [name for name in value if name not in FEATURES]
    ensure(not unknown, Code.UNKNOWN_FEATURE, path, FEATURES, unknown)
    ensure_increasing(value, path, Code.MANIFEST_VALUE)
    return value


def _relaxed(top: Mapping[str, Json]) -> Relaxed:
    """The indices of what was relaxed; that they are the core's is for the rules of the source."""
    members = _members(top, RELAXED, STATEMENTS)
    relaxed: dict[str, tuple[int, ...]] = {}
    for name in STATEMENTS:
        path = f"manifest.relaxed.{name}"
        items = as_list(members[name], path, Code.MANIFEST_SCHEMA)
        indices = [as_whole(item, path, Code.MANIFEST_SCHEMA, _MAX_STATES) for item in items]
        ensure_increasing(indices, path, Code.MANIFEST_VALUE)
        relaxed[name] = tuple(indices)
    some = any(relaxed.values())
    ensure(some, Code.MANIFEST_VALUE, "manifest.relaxed", "a statement at least", "none")
    return Relaxed(**relaxed)


def _require_exactly(expected: Json, found: Json, code: Code, path: str) -> None:
    """Equal, and of the same type: `True` is not 1 here."""
    ensure(type(found) is type(expected) and found == expected, code, path, expected, found)


def _object(value: Json, path: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise Rejected(Code.MANIFEST_SCHEMA, path, "an object", value)
    return value


def _members(top: Mapping[str, Json], name: str, members: list[str]) -> Mapping[str, Json]:
    value = _object(top[name], f"manifest.{name}")
    require(members, sorted(value), Code.MANIFEST_SCHEMA, f"manifest.{name}")
    return value


def _text(members: Mapping[str, Json], name: str) -> str:
    value = members[name]
    if not isinstance(value, str):
        raise Rejected(Code.MANIFEST_SCHEMA, f"manifest: {name}", "a text", value)
    return value


def _size(members: Mapping[str, Json], name: str, low: int, high: int) -> int:
    value = members[name]
    if type(value) is not int:
        raise Rejected(Code.MANIFEST_SCHEMA, f"manifest: {name}", "an integer", value)
    ensure(low <= value <= high, Code.MANIFEST_VALUE, f"manifest: {name}", f"{low}..{high}", value)
    return value


def _digest(value: Json, path: str) -> bytes:
    if not isinstance(value, str) or _HEX.fullmatch(value) is None:
        raise Rejected(Code.MANIFEST_SCHEMA, path, "64 lower-case hex digits", value)
    return bytes.fromhex(value)
