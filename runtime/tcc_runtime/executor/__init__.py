"""Doing a plan: the calls of a certified run, made one by one through a gate.

Text: docs/execute.md.  The gate decides and records; this room only says what to call next, finds
what to call, and tells the gate how it ended.
"""
