"""Sessions: what an agent did, held against its grammar, and what a ledger of that shows.

Start at :mod:`tcc_certs.session.validation`: the order of the checks, on one page.
"""

from tcc_certs.session.validation import validate
from tcc_certs.session.verdict import SessionValidation

__all__ = ["SessionValidation", "validate"]
