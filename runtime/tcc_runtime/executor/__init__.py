"""Executions: the calls of a certified run, made through a gate one after another.

Text: docs/execute.md.  The gate decides and records.  This package chooses the next call, finds its
function, and reports the outcome to the gate.
"""
