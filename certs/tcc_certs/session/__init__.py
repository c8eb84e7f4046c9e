"""Sessions: where a session of a core may be, and the check of its ledger.

Start at :mod:`tcc_certs.session.validation`: the order of the checks, on one page.
"""
