"""The ledger of a session: what is valid, what is not, and what is claimed."""
