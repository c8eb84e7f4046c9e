"""What a ledger says of adapters, beside a registry that its reader trusts.

Text: docs/adapters.md.  The validator proper holds a ledger to itself and to the core.  That its
entries are those of a registry, whose folders are there, is asked here, once it has passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.replay.findings import VALID, Findings
from tcc_runtime.adapters.adapter import Adapter

if TYPE_CHECKING:
    from tcc_certs.replay import Validation


def held_to_registry(
    found: Validation, ledger: Iterable[bytes], registry: Iterable[Adapter]
) -> Validation:
    """The validation, with a finding for each adapter that is not the registry's.

    Args:
        found: what the validator says of the ledger.
        ledger: its bytes, in chunks.
    """
    if found.verdict != VALID:
        return found
    known = {adapter.name: adapter.listed for adapter in registry}
    findings = Findings()
    for item in _listed(ledger):
        expected = known.get(str(item["name"]), "an adapter of the registry")
        if item != expected:
            try:
                findings.add(Code.ADAPTER_LEDGER, 1, "adapters", expected, item)
            except Rejected as limit:
                findings.refuse(limit, 1)
                break
    if not findings.items:
        return found
    return replace(
        found,
        verdict=findings.verdict,
        claim_upheld=False,
        findings=tuple(findings.items),
        summary="invalid: it replays, but an adapter of it is not the registry's",
    )


def _listed(ledger: Iterable[bytes]) -> list[Mapping[str, Json]]:
    first = next(iter(LedgerReader(iter(ledger))))
    listed = first.get("adapters", [])
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
