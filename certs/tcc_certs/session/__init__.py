"""Sessions: the positions of a session of a core, and the validation of its ledger.

Start at :mod:`tcc_certs.session.validation`, which lists the checks in order.
"""

from tcc_certs.session.validation import SessionValidation, validate

__all__ = ["SessionValidation", "validate"]
