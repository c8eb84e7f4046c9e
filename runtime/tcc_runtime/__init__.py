"""From an artifact to a certified run; :mod:`tcc_runtime.search` is the loop on one page."""
