"""A faster reader of ledgers, to be handed to the validator; nobody has to trust it.

:class:`tcc_runtime.fastreplay.shortcut.FastReplay` passes lines that have the expected bytes, and
the definition in `tcc_certs.replay` takes all others.  Differential tests hold whole validations
with and without it to one outcome.
"""
