"""``tcc adapters``: what an adapter is, and whether a registry is true of its folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcc import screen
from tcc.opening import json_option, refuse
from tcc_certs.errors import Rejected

if TYPE_CHECKING:
    from tcc_runtime.adapters.adapter import Adapter


@click.group("adapters")
def command() -> None:
    """Identify adapters that PEFT wrote, and check the registry of those that models run with."""


@command.command("id")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def identify(folder: Path, as_json: bool) -> None:
    """Print the identity of the adapter in FOLDER: of its configuration and its tensors."""
    from tcc_runtime.adapters.folder import ReaderMissing, folder_id

    try:
        found = folder_id(folder)
    except Rejected as refusal:
        refuse(folder, refusal)
    except ReaderMissing:
        raise extra_missing() from None
    if as_json:
        screen.print_json("adapters", {"folder": str(folder), "adapter_id": found})
    else:
        screen.say(found)


@command.command("check")
@click.argument("registry", type=click.Path(path_type=Path))
@json_option
def check(registry: Path, as_json: bool) -> None:
    """Hold each entry of REGISTRY to its folder."""
    known = adapters_in(registry)
    if as_json:
        screen.print_json("adapters", {"adapters": [dict(item.listed) for item in known]})
        return
    for item in known:
        screen.say(f"{item.name} ({item.tier}): {item.adapter_id}")
        screen.say(
            f"  certificate {item.dp_cert_id}: epsilon {item.eps_train}, delta {item.delta_train}"
        )
    screen.good(f"VALID: {len(known)} adapters are as the registry says")


def adapters_in(registry: Path) -> tuple[Adapter, ...]:
    """The adapters of a registry; what is wrong with it ends the command."""
    from tcc_runtime.adapters.folder import ReaderMissing
    from tcc_runtime.adapters.registry import read_registry

    try:
        return read_registry(registry)
    except Rejected as refusal:
        refuse(registry, refusal)
    except ReaderMissing:
        raise extra_missing() from None


def extra_missing() -> click.ClickException:
    """What to do where safetensors is not installed."""
    return click.ClickException(
        "adapters are read by safetensors, which is not installed: "
        "install the extra: pip install '.[adapters]' from a checkout"
    )
