"""Which release of tcc this is."""

from __future__ import annotations


def version() -> str:
    """The version of the package that is installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tcc")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "0+unknown"
