"""The certificates, one file each: C1 to C8 of docs/spec/artifact.md, and the table of calls.

A rule takes what earlier rules have shown and raises `Rejected` at the first place where its
equation fails.  Rules of one equation a state look at a block of states at a time
(:mod:`tcc_certs.rules.sweep`); :mod:`tcc_certs.kernel` says in which order they run.
"""
