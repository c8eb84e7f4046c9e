"""From a tool grammar to a certified artifact; start reading at :mod:`tcc_compiler.pipeline`."""
