"""Composition of mechanisms: Renyi curves, their sum, and the epsilon at a delta."""
