"""The ledger: what a run does becomes lines, chained and written.

Format: docs/spec/ledger.md.
"""
