"""Opening artifacts.  Large files are mapped, and numbers are decoded on demand.

Format: docs/spec/artifact.md.  Opening an artifact checks all certificates; or only the digests, if
the artifact is known to be checked (one BLAKE3 pass); or only header and manifest.  The content of
an unverified artifact is not checked, except for ranges that keep reading safe.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats import artifact
from tcc_certs.formats.codec import decode
from tcc_certs.formats.container import Tensor
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import omitted
from tcc_certs.policy.reader import read_core
from tcc_certs.race.digest import root_context

_LARGE = 1 << 21
_MAPPED = 1 << 26


class CompilerDiagnostic(Protocol):
    """A diagnostic of the compiler about the grammar of an artifact."""

    @property
    def code(self) -> str:
        """A stable code, such as ``TCC411``; ``tcc explain`` describes it."""

    @property
    def severity(self) -> str:
        """``warning``: a grammar with an error has no artifact."""

    @property
    def message(self) -> str:
        """The message, a sentence."""

    @property
    def hint(self) -> str | None:
        """A suggestion how to fix the grammar, or None."""


MANY_STATES = 1 << 12  # with fewer states, importing numpy costs more time than it saves
WIDE = 16  # average number of states of a rank


class Artifact:
    """The automaton, its counts and bounds, and the table of calls.

    Attributes:
        file: the columns, as views of the bytes.
        path: the file; None if the bytes were given.
        verified: whether every certificate was checked, here or earlier.
        diagnostics: the warnings of the compiler, if it ran in this process.  A file does not
            contain them.
        kept: a cache, by name, of values that other modules derive from the artifact.
    """

    def __init__(
        self,
        file: artifact.ArtifactFile,
        *,
        verified: bool,
        texts: Sequence[str] | None,
        path: Path | None = None,
    ) -> None:
        self.file = file
        self.path = path
        self.verified = verified
        self._given_texts = texts
        self.diagnostics: tuple[CompilerDiagnostic, ...] = ()
        self.kept: dict[str, object] = {}

    @property
    def digest(self) -> bytes:
        """The artifact digest, 32 bytes."""
        return self.file.digest

    @property
    def manifest(self) -> artifact.Manifest:
        """Grammar, options and sizes."""
        return self.file.manifest

    @property
    def root(self) -> int:
        """The state of the empty prefix: the first state of an artifact with cycles, else the
        last.
        """
        return 0 if self.cyclic else self.file.manifest.states - 1

    @property
    def is_wide(self) -> bool:
        """True if arrays over all states pay off: many states, many of each rank, verified."""
        return (
            self.verified
            and not self.nondeterministic
            and not self.relaxed
            and not self.cyclic
            and self.root >= MANY_STATES
            and self.root >= WIDE * self.rank(self.root)
        )

    @cached_property
    def root_digest(self) -> bytes:
        """D(root), the digest of the context of the root."""
        return root_context(self.manifest.root_document)

    @cached_property
    def automaton(self) -> artifact.Automaton:
        """The compressed rows: edges, acceptance, rank or distance to an end."""
        return artifact.view(self.file)

    @cached_property
    def texts(self) -> Sequence[str]:
        """The canonical texts of the calls, strictly increasing by their bytes.

        Raises:
            Rejected: B1xx: the column is not canonical JSON.  M301: it is not a list of the right
                number of texts.
        """
        if self._given_texts is not None:
            return self._given_texts
        found = decode(bytes(self.file.columns["call_text"].data), "call_text")
        if not isinstance(found, list) or not all(isinstance(text, str) for text in found):
            raise Rejected(Code.CALL_TABLE, "call_text", "a list of texts", found)
        expected = self.manifest.calls
        ensure(
            len(found) == expected, Code.CALL_TABLE, "call_text", f"{expected} texts", len(found)
        )
        return found

    @cached_property
    def _raw_texts(self) -> Sequence[bytes]:
        return [text.encode() for text in self.texts]

    def call_index(self, text: str) -> int | None:
        """Return the index of the call with this canonical text; None: the artifact has no such
        call.
        """
        try:
            raw = text.encode()
        except UnicodeEncodeError:
            return None
        at = bisect_left(self._raw_texts, raw)
        return at if at < len(self._raw_texts) and self._raw_texts[at] == raw else None

    def edges(self, q: int) -> list[tuple[int, int]]:
        """Return the edges of state `q` as (call, target), in call order.

        Raises:
            Rejected: C101, C104, C201 or C203: a row of an unverified artifact is invalid.
        """
        rows = self.automaton
        low, high = rows.edge_start[q], rows.edge_start[q + 1]
        ensure(low <= high <= len(rows.edge_call), Code.EDGE_START, f"edge_start[{q}]", low, high)
        found = list(zip(rows.edge_call[low:high], rows.edge_target[low:high], strict=True))
        for at, (call, target) in enumerate(found, low):
            if call >= self.manifest.calls:
                raise Rejected(Code.EDGE_RANGE, f"edge_call[{at}]", "a call's number", call)
            if target >= (self.manifest.states if self.cyclic else q):
                code = Code.TARGET_NUMBER if self.cyclic else Code.TARGET_ORDER
                raise Rejected(code, f"edge_target[{at}]", "a state that it may lead to", target)
        return found

    def steps(self, members: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """Return each call of a set of states with the set that it leads to, in call order.

        Args:
            members: states, increasing; a single one if the automaton is deterministic.

        Raises:
            Rejected: see :meth:`edges`.
        """
        if not self.nondeterministic:
            return [(call, (target,)) for call, target in self.edges(members[0])]
        found: dict[int, set[int]] = {}
        for q in members:
            for call, target in self.edges(q):
                found.setdefault(call, set()).add(target)
        return [(call, tuple(sorted(found[call]))) for call in sorted(found)]

    def accepts(self, q: int) -> bool:
        """Return whether a plan may stop in `q`."""
        return self.automaton.accept[q] != 0

    def rank(self, q: int) -> int:
        """Return d(q), the most calls that may follow.

        Raises:
            Rejected: D204: the artifact has cycles.
        """
        self.require_bounded()
        return self.automaton.rank[q]

    def plans(self, q: int) -> int:
        """Return N(q), the number of plans below a state, or an upper bound if the manifest says
        so.

        Raises:
            Rejected: C301: an exponent of an unverified artifact is impossible.  D204: the artifact
                has cycles.
        """
        self.require_bounded()
        if self.manifest.gate:
            exponent, most = self._plans_exponent[q], 32 * self.manifest.states
            ensure(exponent <= most, Code.PLAN_COUNT, f"plans_exponent[{q}]", most, exponent)
            return self._plans_mantissa[q] << exponent
        return _row(self.file.columns["plans"], q)

    def race_count(self, q: int) -> int:
        """Return m(q), the race count, in units of 2^(-F d(q)).

        Raises:
            Rejected: D203: the artifact is for a gate.  D204: it has cycles.
        """
        if self.manifest.round_counts is not None:
            return self._mantissa[q] << self._exponent[q]
        data, size = self._race_counts
        return int.from_bytes(data[q * size : (q + 1) * size], "little")

    def count_bits(self, q: int) -> int:
        """Return the number of bits of m(q), without expanding a rounded count."""
        if self.manifest.round_counts is not None:
            return self._mantissa[q].bit_length() + self._exponent[q]
        return self.race_count(q).bit_length()

    def mantissa_bits(self, q: int) -> int:
        """Return the number of bits of the mantissa of a rounded m(q)."""
        return self._mantissa[q].bit_length()

    @property
    def most_count_bits(self) -> int:
        """An upper bound on the bits of a rounded m; 0 if counts are not rounded."""
        return 0 if self.manifest.round_counts is None else max(self._exponent) + 64

    def cost_to_go(self, q: int) -> int:
        """Return h(q), the least cost of a plan below a state, in nano-units.

        Raises:
            Rejected: D204: the artifact has cycles.
        """
        return self._cost_to_go[q]

    def residual_to_go(self, q: int) -> int:
        """Return g(q), the largest residual to go, Q31.32.

        Raises:
            Rejected: D204: the artifact has cycles.
        """
        return self._residual_to_go[q]

    @property
    def cyclic(self) -> bool:
        """True if the automaton has cycles.  Then the length of plans has no bound, and states have
        no counts.
        """
        return self.manifest.cyclic

    def require_bounded(self) -> None:
        """Require an artifact without cycles.  With cycles it has no counts, ranks and costs to go.

        Raises:
            Rejected: D204: the artifact has cycles.
        """
        if self.cyclic:
            path, expected = "manifest.critical", artifact.NEEDED_FOR_COUNTS
            raise Rejected(Code.ENDLESS, path, expected, artifact.ENDLESS)

    @property
    def nondeterministic(self) -> bool:
        """True if a call may lead to several states."""
        return self.manifest.nondeterministic

    @property
    def relaxed(self) -> tuple[int, ...]:
        """The numbers of the statements that the automaton omits and a run enforces."""
        return self.manifest.relaxed

    @property
    def omitted(self) -> frozenset[int]:
        """The numbers of the statements that the automaton omits, although it could hold them."""
        return omitted(self.core, self.relaxed, cyclic=self.cyclic)

    @cached_property
    def core(self) -> Core:
        """The core of the grammar.

        Raises:
            Rejected: B1xx, C801, D1xx, D201: the core of an unverified artifact is invalid.
        """
        return read_core(bytes(self.file.columns["core"].data))

    @cached_property
    def cost_low(self) -> Sequence[int]:
        """The low cost of each call, in nano-units."""
        return self.file.columns["call_cost_low"].items()

    @cached_property
    def cost_high(self) -> Sequence[int]:
        """The high cost of each call, in nano-units."""
        return self.file.columns["call_cost_high"].items()

    @cached_property
    def fixed_costs(self) -> bool:
        """True if every call has one cost, not a range."""
        return self.cost_low == self.cost_high

    @cached_property
    def weight(self) -> Sequence[int]:
        """The weight W of each call, in units of 2^-F."""
        return self.file.columns["call_weight"].items()

    @cached_property
    def _plans_mantissa(self) -> Sequence[int]:
        return self.file.columns["plans_mantissa"].items()

    @cached_property
    def _plans_exponent(self) -> Sequence[int]:
        return self.file.columns["plans_exponent"].items()

    @cached_property
    def _race_counts(self) -> tuple[bytes | memoryview, int]:
        columns = self.file.columns
        artifact.require_race_counts(self.manifest)
        found = columns["race_count"] if "race_count" in columns else columns["plans"]
        return found.data, 8 * found.shape[1]

    @cached_property
    def _mantissa(self) -> Sequence[int]:
        return self.file.columns["race_mantissa"].items()

    @cached_property
    def _exponent(self) -> Sequence[int]:
        return self.file.columns["race_exponent"].items()

    @cached_property
    def _cost_to_go(self) -> Sequence[int]:
        self.require_bounded()
        return self.file.columns["cost_to_go"].items()

    @cached_property
    def _residual_to_go(self) -> Sequence[int]:
        self.require_bounded()
        return self.file.columns["residual_to_go"].items()


_Kind = TypeVar("_Kind", bound=Artifact)


def _row(column: Tensor, q: int) -> int:
    size = 8 * column.shape[1]
    return int.from_bytes(column.data[q * size : (q + 1) * size], "little")


def load(data: bytes | Path, *, verify: bool = True, checked: str | None = None) -> Artifact:
    """Open an artifact.

    Args:
        data: the bytes, or a path.  A file of more than 64 MiB must not change while it is in use.
        verify: whether to check every digest and certificate.  False: only header and manifest are
            read, and a run claims nothing.
        checked: the digest, in lower-case hex, of an artifact whose certificates the caller has
            checked before.  The artifact and its columns must have their digests; the certificates
            are not checked again, because equal bytes have equal certificates.  Without `verify`,
            the digests of the columns are not checked either.

    Raises:
        Rejected: the artifact is refused or declined; P101: its digest is not `checked`.
        OSError: the file cannot be opened.
    """
    return load_as(Artifact, data, verify=verify, checked=checked)


def load_as(
    kind: type[_Kind], data: bytes | Path, *, verify: bool = True, checked: str | None = None
) -> _Kind:
    """Open an artifact as an instance of a subclass; see :func:`load`."""
    path = data if isinstance(data, Path) else None
    raw = content_of(data) if isinstance(data, Path) else memoryview(data)
    if not verify or checked is not None:
        file = artifact.read_artifact(raw, digests=verify)
        if checked is not None:
            require(checked, file.digest.hex(), Code.PIN, "artifact digest")
        return kind(file, verified=verify, texts=None, path=path)
    shown = _check(raw)
    return kind(shown.file, verified=True, texts=shown.calls, path=path)


def _check(raw: memoryview) -> CheckedArtifact:
    """Check every certificate. numpy is only imported for large artifacts, where it saves time."""
    if len(raw) < _LARGE:
        return check(raw)
    from tcc_runtime.fastcheck.kernel import check as check_in_bulk

    return check_in_bulk(raw)


def content_of(path: Path) -> memoryview:
    """Return the bytes of a file: read, or mapped if the file has more than 64 MiB.

    A program that writes into a mapped file changes the artifact in use, and a file that shrinks
    ends the process.  Artifacts of gates are small, so they are read.

    Raises:
        OSError: the file cannot be opened.
    """
    with path.open("rb") as handle:
        if handle.seek(0, 2) <= _MAPPED:
            handle.seek(0)
            return memoryview(handle.read())
        return memoryview(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
