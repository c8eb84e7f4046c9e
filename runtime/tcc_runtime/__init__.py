"""The runtime: runs a certified search from an artifact and a seed, and gates sessions of agents.

Start at :mod:`tcc_runtime.run`, or at :mod:`tcc_runtime.gate.gate`.  Depends on the formats of
tcc_certs, and not on the compiler.
"""
