"""The verbs of ``python -m tcc_certs``, one file each.

The file of a verb has ``add``, which declares its arguments, and ``run``, which takes the arguments
and returns a report.  A new verb needs one more file and one more entry in
:mod:`tcc_certs.__main__`.
"""
