"""Exact questions against brute force: every session over listed values."""
