"""Questions to persons: calls that `ask` statements hold, verdicts, and ways to hand them in.

:mod:`tcc_runtime.gate.asking.questions` keeps the questions of a session.
:mod:`tcc_runtime.gate.asking.verdicts` records verdicts, also those that other processes leave in
files.  :mod:`tcc_runtime.gate.asking.places` answers questions of ledgers whose artifact is not at
hand.  The definition is :mod:`tcc_certs.session.approvals`.
Text: docs/ask.md; docs/spec/session.md, section 6.
"""
