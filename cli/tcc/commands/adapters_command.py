"""``tcc adapters``: identifies adapters, and checks a registry against its folders."""

from __future__ import annotations

from pathlib import Path

import click

from tcc import screen
from tcc.opening import adapters_in, refusing
from tcc.options import json_option


@click.group("adapters")
def command() -> None:
    """Identify adapters of PEFT, and check the registry of the adapters that models use."""


@command.command("id")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def identify(folder: Path, as_json: bool) -> None:
    """Print the identity of the adapter in FOLDER: a digest of its configuration and tensors."""
    from tcc_runtime.adapters.registry import folder_id

    with refusing(folder):
        found = folder_id(folder)
    if as_json:
        from tcc.outputs.verdicts import AdapterIdOutput

        screen.print_output(AdapterIdOutput(folder=str(folder), adapter_id=found))
    else:
        screen.say(found)


@command.command("check")
@click.argument("registry", type=click.Path(path_type=Path))
@json_option
def check(registry: Path, as_json: bool) -> None:
    """Check each entry of REGISTRY against its folder."""
    known = adapters_in(registry)
    if as_json:
        from tcc.outputs.verdicts import AdaptersOutput

        screen.print_output(AdaptersOutput(adapters=[dict(item.listed) for item in known]))
        return
    for item in known:
        screen.say(f"{item.name} ({item.tier}): {item.adapter_id}")
        screen.say(
            f"  certificate {item.dp_cert_id}: epsilon {item.eps_train}, delta {item.delta_train}"
        )
    screen.good(f"VALID: {len(known)} adapters are as the registry says")
