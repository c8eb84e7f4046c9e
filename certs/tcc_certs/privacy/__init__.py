"""What mechanisms come to together: Renyi curves, their sum, and the epsilon at a delta."""
