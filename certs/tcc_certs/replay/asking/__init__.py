"""Questions about costs of calls: the controller, the known costs, the records, an account."""
