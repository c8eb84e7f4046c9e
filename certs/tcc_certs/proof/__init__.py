"""The kernel for exact questions: checks proofs about every session that a gate allows."""
