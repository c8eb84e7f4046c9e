"""The required packages of tcc, and the advice to print when one is not installed.

`pip install .` installs them; a checkout on the import path may lack them.  Modules that use an
extra report its packages themselves.  Imports only the standard library, as click may be missing.
"""

from __future__ import annotations

from typing import Final

# The same names as `dependencies` in pyproject.toml.
REQUIREMENTS: Final = frozenset(
    {"blake3", "click", "gmpy2", "lark", "msgspec", "networkx", "numpy", "rich", "tzdata"}
)


def mend(error: BaseException) -> str | None:
    """Return how to install the requirement that an import lacked; None for any other error."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if name not in REQUIREMENTS:
        return None
    return (
        f"{name}, which tcc requires, is not installed: pip install {name}, or all that it "
        "requires: pip install . in the folder of its sources"
    )
