"""The accountant: Renyi curves of mechanisms, their sum, and from Renyi to epsilon at a delta."""
