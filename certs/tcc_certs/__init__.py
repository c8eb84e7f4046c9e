"""The trusted kernel of tcc: formats, certificates, definitions and validators.

It depends only on the standard library and BLAKE3, uses only integers, and imports neither the
compiler nor the runtime.
"""
