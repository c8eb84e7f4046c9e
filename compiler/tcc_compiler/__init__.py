"""From a tool grammar to a certified artifact; :mod:`tcc_compiler.pipeline` reads as the list."""
