"""The commands, one module each; :mod:`tcc.main` finds a module by the command's name."""
