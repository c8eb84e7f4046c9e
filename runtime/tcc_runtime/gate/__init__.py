"""The gate: an agent's calls, one at a time, each held to the grammar before it is made.

Text: docs/gate.md; what it writes: docs/spec/session.md.
"""
