"""The gate: decides each call of an agent by the grammar before the call is made.

Text: docs/gate.md; its ledgers: docs/spec/session.md.
"""
