"""``python -m tcc``: the same as ``tcc``."""

from tcc.main import main

if __name__ == "__main__":  # a process that was started by spawning reads this file again
    main()
