"""The privacy accountant: Renyi curves of mechanisms, their sum, and the epsilon at a delta."""
