"""``python -m tcc``: the same as ``tcc``."""

try:
    from tcc.main import main
except ModuleNotFoundError as error:  # click may be missing, so argparse prints the error
    from argparse import ArgumentParser

    from tcc.requirements import mend

    if (said := mend(error)) is None:
        raise
    ArgumentParser().exit(2, f"Error: {said}\n")

if __name__ == "__main__":  # a spawned child process imports this file under another name
    main()
