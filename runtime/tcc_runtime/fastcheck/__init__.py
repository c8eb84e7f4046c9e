"""The vectorised kernel: checks the certificates of large artifacts in bulk, with numpy.

It only answers VALID: then every equation of every state was evaluated exactly, and is true.  If it
finds a fault, or cannot decide, it leaves the artifact to :mod:`tcc_certs.kernel`.  So all findings
come from that kernel.  Text of the rules: docs/spec/artifact.md, section 5.
"""
