"""An artifact as a run uses it: mapped, checked on request, read where it is touched.

Format: docs/spec/artifact.md.  Every number of a state is decoded when it is asked for, and opening
costs what is checked: all certificates; or the digests alone, of an artifact known to have been
checked (one BLAKE3 pass); or the header and the manifest, whatever the size.  What an unverified
artifact says is taken at its word, but for the ranges that keep reading safe.
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
from tcc_certs.policy.reader import read_core
from tcc_certs.race.digest import root_context

_LARGE = 1 << 21


class CompilerDiagnostic(Protocol):
    """What whoever compiled an artifact said of its grammar."""

    @property
    def code(self) -> str:
        """Stable, such as ``TCC411``; ``tcc explain`` says what it means."""

    @property
    def severity(self) -> str:
        """``warning``: where there is an artifact, there was no error."""

    @property
    def message(self) -> str:
        """What is to be said, a sentence."""

    @property
    def hint(self) -> str | None:
        """The mend, where there is one."""


MANY_STATES = 1 << 12  # below, loading numpy takes as long as a state at a time
WIDE = 16  # states of a rank


class Artifact:
    """The automaton, its counts and bounds, and the table of calls.

    Attributes:
        file: the columns, as views of the bytes.
        path: the file that is mapped; None where the bytes were given.
        verified: True where every certificate was checked, here or, by its digest, before.
        diagnostics: the compiler's warnings, where it was compiled in this process: what was
            relaxed, and what else the author should know.  Empty for a file: the warnings are not
            stored, what is relaxed is (`relaxed`, `manifest.critical`).
        kept: what other rooms made of it and keep for the next run, by their own names.
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
        """The state of the empty prefix."""
        return self.file.manifest.states - 1

    @property
    def is_wide(self) -> bool:
        """Whether arrays of all its states pay: many, and many of each rank; never unverified."""
        return (
            self.verified
            and not self.nondeterministic
            and not self.relaxed
            and self.root >= MANY_STATES
            and self.root >= WIDE * self.rank(self.root)
        )

    @cached_property
    def root_digest(self) -> bytes:
        """D(root)."""
        return root_context(self.manifest.root_document)

    @cached_property
    def automaton(self) -> artifact.Automaton:
        """The compressed rows: edges, acceptance, rank."""
        return artifact.view(self.file)

    @cached_property
    def texts(self) -> Sequence[str]:
        """The canonical texts of the calls, strictly increasing by their bytes.

        Raises:
            Rejected: B1xx the column is not canonical JSON, M301 it is no list of that many texts.
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
        """The number of the call with that canonical text, None where no edge carries it."""
        try:
            raw = text.encode()
        except UnicodeEncodeError:
            return None
        at = bisect_left(self._raw_texts, raw)
        return at if at < len(self._raw_texts) and self._raw_texts[at] == raw else None

    def edges(self, q: int) -> list[tuple[int, int]]:
        """The edges of state `q` as (call, target), in call order.

        Raises:
            Rejected: C101, C104 or C201, of an unverified artifact whose row leads nowhere.
        """
        rows = self.automaton
        low, high = rows.edge_start[q], rows.edge_start[q + 1]
        ensure(low <= high <= len(rows.edge_call), Code.EDGE_START, f"edge_start[{q}]", low, high)
        found = list(zip(rows.edge_call[low:high], rows.edge_target[low:high], strict=True))
        for at, (call, target) in enumerate(found, low):
            if call >= self.manifest.calls:
                raise Rejected(Code.EDGE_RANGE, f"edge_call[{at}]", "a call's number", call)
            if target >= q:
                raise Rejected(Code.TARGET_ORDER, f"edge_target[{at}]", f"less than {q}", target)
        return found

    def steps(self, members: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
        """Each call of a set of states with the set that it leads to, in call order.

        Args:
            members: states, increasing; one where the automaton is deterministic.

        Raises:
            Rejected: as :meth:`edges`.
        """
        if not self.nondeterministic:
            return [(call, (target,)) for call, target in self.edges(members[0])]
        found: dict[int, set[int]] = {}
        for q in members:
            for call, target in self.edges(q):
                found.setdefault(call, set()).add(target)
        return [(call, tuple(sorted(found[call]))) for call in sorted(found)]

    def accepts(self, q: int) -> bool:
        """Whether a plan may stop in `q`."""
        return self.automaton.accept[q] != 0

    def rank(self, q: int) -> int:
        """d(q), the most calls that may still follow."""
        return self.automaton.rank[q]

    def plans(self, q: int) -> int:
        """N(q), the number of plans below; an upper bound where the manifest's counts are.

        Raises:
            Rejected: C301, of an unverified artifact whose exponent no number of plans has.
        """
        if self.manifest.gate:
            exponent, most = self._plans_exponent[q], 32 * self.manifest.states
            ensure(exponent <= most, Code.PLAN_COUNT, f"plans_exponent[{q}]", most, exponent)
            return self._plans_mantissa[q] << exponent
        return _row(self.file.columns["plans"], q)

    def race_count(self, q: int) -> int:
        """m(q), the race count in units of 2^(-F d(q)).

        Raises:
            Rejected: D203 it is for a gate, and has none.
        """
        if self.manifest.round_counts is not None:
            return self._mantissa[q] << self._exponent[q]
        data, size = self._race_counts
        return int.from_bytes(data[q * size : (q + 1) * size], "little")

    def count_bits(self, q: int) -> int:
        """How many bits m(q) takes, which is not written out for it where it is rounded."""
        if self.manifest.round_counts is not None:
            return self._mantissa[q].bit_length() + self._exponent[q]
        return self.race_count(q).bit_length()

    def mantissa_bits(self, q: int) -> int:
        """How many bits the mantissa of a rounded m(q) takes."""
        return self._mantissa[q].bit_length()

    @property
    def most_count_bits(self) -> int:
        """No rounded m takes more bits; 0 where none is rounded."""
        return 0 if self.manifest.round_counts is None else max(self._exponent) + 64

    def cost_to_go(self, q: int) -> int:
        """h(q), the least cost of a plan below, nano-units."""
        return self._cost_to_go[q]

    def residual_to_go(self, q: int) -> int:
        """g(q), the best residual to go, Q31.32."""
        return self._residual_to_go[q]

    @property
    def nondeterministic(self) -> bool:
        """Whether a call may lead to several states."""
        return self.manifest.nondeterministic

    @property
    def relaxed(self) -> tuple[int, ...]:
        """The numbers of the statements that the automaton omits and a run enforces."""
        return self.manifest.relaxed

    @cached_property
    def core(self) -> Core:
        """The grammar after names, letters and sugar.

        Raises:
            Rejected: B1xx, C801, D1xx, D201, of an unverified artifact.
        """
        return read_core(bytes(self.file.columns["core"].data))

    @cached_property
    def cost_low(self) -> Sequence[int]:
        """Each call's low cost, nano-units."""
        return self.file.columns["call_cost_low"].items()

    @cached_property
    def cost_high(self) -> Sequence[int]:
        """Each call's high cost, nano-units."""
        return self.file.columns["call_cost_high"].items()

    @cached_property
    def fixed_costs(self) -> bool:
        """Whether no call's cost is a range."""
        return self.cost_low == self.cost_high

    @cached_property
    def weight(self) -> Sequence[int]:
        """Each call's W, its weight in units of 2^-F."""
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
        if self.manifest.gate:
            raise Rejected(
                Code.NO_RACE, "manifest.critical", artifact.NEEDED_FOR_RUNS, "for a gate"
            )
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
        return self.file.columns["cost_to_go"].items()

    @cached_property
    def _residual_to_go(self) -> Sequence[int]:
        return self.file.columns["residual_to_go"].items()


_Kind = TypeVar("_Kind", bound=Artifact)


def _row(column: Tensor, q: int) -> int:
    size = 8 * column.shape[1]
    return int.from_bytes(column.data[q * size : (q + 1) * size], "little")


def load(data: bytes | Path, *, verify: bool = True, checked: str | None = None) -> Artifact:
    """Opens an artifact.

    Args:
        data: the bytes themselves, or a file to map; a mapped file must not be changed while in
            use.
        verify: check every digest and certificate first.  Without it nothing but the frame is
            read, and a run claims nothing.
        checked: the digest, lower-case hex, of an artifact whose certificates were checked before,
            by whoever says so.  It must be this one's, and so must the digests of the columns;
            equal bytes have equal certificates, so these are not checked again.  Without `verify`
            the columns' digests are not looked at, and a run claims nothing.

    Raises:
        Rejected: the artifact is refused or declined; P101, it is not the one that was checked.
        OSError: the file cannot be opened.
    """
    return load_as(Artifact, data, verify=verify, checked=checked)


def load_as(
    kind: type[_Kind], data: bytes | Path, *, verify: bool = True, checked: str | None = None
) -> _Kind:
    """As :func:`load`, an artifact of a class that adds methods of its own."""
    path = data if isinstance(data, Path) else None
    raw = mapped(data) if isinstance(data, Path) else memoryview(data)
    if not verify or checked is not None:
        file = artifact.read_artifact(raw, digests=verify)
        if checked is not None:
            require(checked, file.digest.hex(), Code.PIN, "artifact digest")
        return kind(file, verified=verify, texts=None, path=path)
    shown = _check(raw)
    return kind(shown.file, verified=True, texts=shown.calls, path=path)


def _check(raw: memoryview) -> CheckedArtifact:
    """Every certificate; loading numpy pays for large artifacts only."""
    if len(raw) < _LARGE:
        return check(raw)
    from tcc_runtime.fastcheck.kernel import check as check_in_bulk

    return check_in_bulk(raw)


def mapped(path: Path) -> memoryview:
    """The bytes of a file, mapped; it must not be cut while they are in use.

    Raises:
        OSError: the file cannot be opened.
    """
    with path.open("rb") as handle:
        # An empty file cannot be mapped; the reader refuses it all the same.
        if handle.seek(0, 2) == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
