"""``python -m tcc``: the same as ``tcc``."""

try:
    from tcc.main import main
except ModuleNotFoundError as error:  # of click, by which all else is said
    from argparse import ArgumentParser

    from tcc.requirements import mend

    if (said := mend(error)) is None:
        raise
    ArgumentParser().exit(2, f"Error: {said}\n")

if __name__ == "__main__":  # a process that was started by spawning reads this file again
    main()
