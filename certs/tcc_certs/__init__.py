"""The trusted kernel of tcc: formats, certificates, definitions and the validator.

Depends on the standard library and on BLAKE3 alone; integers only; nothing here imports the
compiler or the runtime.
"""
