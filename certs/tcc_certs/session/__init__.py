"""Sessions: where a session of a core may be, and the validation of its ledger.

Start at :mod:`tcc_certs.session.validation`, which has the order of the checks.
"""

from tcc_certs.session.validation import SessionValidation, validate

__all__ = ["SessionValidation", "validate"]
