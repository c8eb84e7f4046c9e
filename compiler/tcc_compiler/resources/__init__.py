"""What one compilation may use, and how a pass refuses where that is not enough."""
