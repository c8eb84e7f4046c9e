"""The second checker, extracted from its proofs (proofs/checker), beside tcc_certs."""
