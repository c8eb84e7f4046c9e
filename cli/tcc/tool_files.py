"""The Python file that `tcc exec` is given: tools, open arguments, and what becomes of calls.

The file is its owner's: what it raises is said, and ends the command.
"""

from __future__ import annotations

import importlib.util
import inspect
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from tcc_runtime.artifact.load import Artifact


def tools_in(path: Path | None, artifact: Artifact) -> tuple[dict[str, Any] | None, Any, Any]:
    """Tools, open arguments and `resolve` of a Python file; what is wrong ends the command."""
    if path is None:
        return None, None, None
    spec = importlib.util.spec_from_file_location("tcc_exec_tools", path)
    if spec is None or spec.loader is None:
        raise click.BadParameter(f"{str(path)!r} is no Python file", param_hint="--tools")
    module = importlib.util.module_from_spec(spec)
    with _owners(str(path)):
        spec.loader.exec_module(module)
    found = getattr(module, "TOOLS", None)
    if found is None:
        names = [tool.name for tool in artifact.core.tools]
        found = {name: getattr(module, name) for name in names if hasattr(module, name)}
    if not isinstance(found, Mapping):
        raise click.BadParameter("TOOLS is no mapping", param_hint="--tools")
    source, resolve = getattr(module, "arguments", None), getattr(module, "resolve", None)
    if callable(source):
        source = _asked(source, f"{path}: arguments")
    if resolve is not None and not callable(resolve):
        raise click.BadParameter("`resolve` is nothing to call", param_hint="--tools")
    return dict(found), source, None if resolve is None else _told(resolve, f"{path}: resolve")


@contextmanager
def _owners(where: str) -> Iterator[None]:
    """The code of the file's owner, which may raise anything, and exit too."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit, CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - see above
        said = f"{where}: {type(error).__name__}: {error}"
        raise click.ClickException(said) from None


def _asked(source: Callable[[Any], Any], where: str) -> Callable[[Any], Any]:
    async def ask(step: Any) -> Any:
        with _owners(where):
            found = source(step)
            return await found if inspect.isawaitable(found) else found

    return ask


def _told(resolve: Callable[[Any], Any], where: str) -> Callable[[Any], Any]:
    def tell(made: Any) -> Any:
        with _owners(where):
            return resolve(made)

    return tell
