"""The ledger of a run: its steps as lines, which are chained and written.

Format: docs/spec/ledger.md.
"""
