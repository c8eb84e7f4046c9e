"""The certificates, one file each: C1 to C8 of docs/spec/artifact.md, and the table of calls.

A rule takes what earlier rules have shown and raises `Rejected` at the first place where its
equation fails.  Rules read edges as streams in state order, so none holds more than a few numbers
a state; :mod:`tcc_certs.kernel` says in which order they run.
"""
