"""The commands, one a file; :mod:`tcc.main` finds them by name."""
