"""Signed statements about artifacts and ledgers: docs/signing.md.

An in-toto Statement v1 in a DSSE envelope, signed by Ed25519.  What it says was found to be true by
the command that signs it.
"""
