"""``python -m tcc``: the same as ``tcc``."""

from tcc.main import main

main()
