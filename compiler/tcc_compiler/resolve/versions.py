"""What the version of a grammar may be, wherever it is written.

Normative text: docs/spec/language.md, section 4.  Cost: linear in the text.
"""

from __future__ import annotations

from tcc_certs.limits import MAX_VERSION_BYTES
from tcc_certs.plain import hidden_in


def version_fault(text: str) -> tuple[str, str] | None:
    """What is wrong with the text of a version, and its mend; None where nothing is."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_VERSION_BYTES:
        message = f"the version takes more than {MAX_VERSION_BYTES} bytes"
        return message, "it stands in the head of every ledger"
    hidden = hidden_in(text)
    if hidden is not None:
        message = f"the version holds U+{ord(hidden):04X}, a control or hidden character"
        return message, "leave it out: a version is shown on terminals and in logs"
    return None
