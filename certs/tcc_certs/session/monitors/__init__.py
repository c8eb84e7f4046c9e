"""The statements that a gate holds a session to: one interpreter, for gate, validator and proofs.

:mod:`keyed` has those that compare keys alone, whichever version of the core wrote them down, and
what they remember of a session; :mod:`policies` those of version 1.2 that say more of the calls
that they look at.  What a call is to them is read by :mod:`statements`, and out of the records of
a ledger by :mod:`digested` and :mod:`nesting`.
"""
