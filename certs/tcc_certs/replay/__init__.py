"""The validator: replays a ledger against its artifact and says what was shown.

Start at :mod:`tcc_certs.replay.order`: the order of the checks, on one page.
"""

from tcc_certs.replay.findings import Finding, Validation
from tcc_certs.replay.order import validate

__all__ = ["Finding", "Validation", "validate"]
