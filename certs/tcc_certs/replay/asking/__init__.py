"""Asking what calls cost: the controller, what is known of each edge, the records, an account."""
