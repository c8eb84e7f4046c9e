"""Questions to persons: calls that wait for a person, verdicts, and ways to deliver verdicts.

:mod:`tcc_runtime.gate.asking.questions` keeps the questions of a session.
:mod:`tcc_runtime.gate.asking.verdicts` records verdicts, also those that other processes leave in
files.  :mod:`tcc_runtime.gate.asking.places` answers questions of ledgers without their artifacts.
The definition is :mod:`tcc_certs.session.approvals`.
Text: docs/ask.md; docs/spec/session.md, section 6.
"""
