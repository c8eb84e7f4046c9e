"""Requirements of tcc, which `pip install .` brings along: what to do where one is not installed.

A checkout that is merely on the path has none of them.  Packages of extras are told where they are
imported.  Imports nothing but the standard library: click is a requirement as well.
"""

from __future__ import annotations

from typing import Final

# As in pyproject.toml.
REQUIREMENTS: Final = frozenset(
    {"blake3", "click", "gmpy2", "lark", "msgspec", "networkx", "numpy", "rich", "tzdata"}
)


def mend(error: BaseException) -> str | None:
    """What to do about an import that lacked a requirement; None: it is another error."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if name not in REQUIREMENTS:
        return None
    return (
        f"{name}, which tcc requires, is not installed: pip install {name}, or all that it "
        "requires: pip install . in the folder of its sources"
    )
