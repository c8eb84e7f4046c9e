"""Sessions: what an agent did, held against its grammar, and what a ledger of that shows.

Start at :mod:`tcc_certs.session.validation`: the order of the checks, on one page.
"""

from tcc_certs.session.validation import SessionValidation, validate

__all__ = ["SessionValidation", "validate"]
