"""The vectorised kernel: the certificates of large artifacts, evaluated in bulk with numpy.

It answers VALID alone: every equation of every state was evaluated, exactly, and holds.  Whatever
it cannot decide, and whatever it finds wrong, it hands to :mod:`tcc_certs.kernel`, whose findings
are so the only ones there are.  Text of the rules: docs/spec/artifact.md, section 5.
"""
