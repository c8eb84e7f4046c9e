"""What a ledger says of adapters, beside a registry that its reader trusts.

Text: docs/adapters.md.  The validator proper holds a ledger to itself and to the core.  That its
entries are those of a registry, whose folders are there, is asked here, once it has passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tcc.unheld import Found, passed, unheld
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.replay.findings import Findings
from tcc_runtime.adapters.adapter import Adapter


def held_to_registry(found: Found, ledger: Iterable[bytes], registry: Iterable[Adapter]) -> Found:
    """The validation, with a finding for each adapter that is not the registry's.

    Args:
        found: what the validator says of the ledger.
        ledger: its bytes, in chunks.
    """
    if not passed(found):
        return found
    known = {adapter.name: adapter.listed for adapter in registry}
    findings = Findings()
    for line, item in _listed(ledger):
        expected = known.get(str(item["name"]), "an adapter of the registry")
        if item != expected:
            try:
                findings.add(Code.ADAPTER_LEDGER, line, "adapters", expected, item)
            except Rejected as limit:
                findings.refuse(limit, line)
                break
    if not findings.items:
        return found
    return unheld(found, findings, "it replays, but an adapter of it is not the registry's")


def _listed(ledger: Iterable[bytes]) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """The adapters that a ledger lists, each with its line: of a run, or of a session's budget."""
    for line, record in enumerate(LedgerReader(iter(ledger)), 1):
        kind, listed = record.get("kind"), record.get("adapters", [])
        for item in listed if isinstance(listed, list) else ():
            if isinstance(item, dict):
                yield line, item
        if kind in ("open", "budget"):
            return
