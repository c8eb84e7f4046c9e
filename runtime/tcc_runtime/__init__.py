"""The runtime: an artifact and a seed become one certified run.

Start at :mod:`tcc_runtime.run`.  Knows the formats of tcc_certs and nothing of the compiler.
"""
