"""The verbs of ``python -m tcc_certs``, one file each.

A verb's file has ``add`` (its arguments) and ``run`` (arguments in, a report out); a new verb is
one more file and one more entry in :mod:`tcc_certs.__main__`.
"""
