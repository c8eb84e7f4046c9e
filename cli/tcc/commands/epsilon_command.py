"""``tcc epsilon``: composes privacy mechanisms to an epsilon at a delta."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tcc import screen
from tcc.opening import atoms_in, refusing
from tcc.options import delta_of, json_option
from tcc_certs.policy.atoms import Atom, Points, atom_document
from tcc_certs.privacy import accountant
from tcc_certs.privacy.spending import exact_delta
from tcc_runtime.settings.settings import DEFAULT_DELTA

if TYPE_CHECKING:
    from tcc.outputs.runs import EpsilonOutput

_SHOWN = 20
_METHODS = {
    accountant.PURE: "the sum of the pure epsilons",
    accountant.GDP: "exactly, as Gaussian differential privacy",
    accountant.PLD: "from the distribution of the losses",
}


@click.command("epsilon")
@click.argument("atoms", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option(
    "--delta",
    default=DEFAULT_DELTA,
    show_default=True,
    metavar="DECIMAL",
    callback=delta_of,
    help="delta at which the epsilon holds, above 0 and below 1",
)
@json_option
def command(atoms: Path, delta: str, as_json: bool) -> None:
    """Compose the mechanisms listed in ATOMS (- is standard input), a JSON list of atoms.

    The epsilon is rounded up at every step, so it is never below the true one.
    """
    listed = atoms_in(atoms)
    with refusing(atoms):
        total = accountant.total_of(listed)
    found = accountant.stated(total, exact_delta(delta))
    if as_json:
        screen.print_output(_output(total, found, delta))
    else:
        _print(listed, found, delta)


def _output(
    total: accountant.Composed, found: accountant.EpsilonBound, delta: str
) -> EpsilonOutput:
    from tcc.outputs.runs import EpsilonOutput

    return EpsilonOutput(
        epsilon=accountant.epsilon_text(found.epsilon),
        delta=delta,
        alpha=found.alpha,
        rdp=accountant.epsilon_text(found.rdp),
        atoms=total.atoms,
        orders=[list(point) for point in accountant.points_of(total)],
    )


def _print(listed: tuple[Atom, ...], found: accountant.EpsilonBound, delta: str) -> None:
    for atom in listed[:_SHOWN]:
        members = dict(atom_document(atom))
        name = members.pop("mechanism")
        if isinstance(atom, Points):
            members["points"] = len(atom.points)
        screen.say(f"  {name}: {', '.join(f'{key} {value}' for key, value in members.items())}")
    if len(listed) > _SHOWN:
        screen.say(f"  and {len(listed) - _SHOWN} more")
    how = _METHODS.get(found.alpha)
    if how is None:
        how = f"from {accountant.epsilon_text(found.rdp)} at order {found.alpha}"
    screen.print_fields(
        [("epsilon", f"{accountant.epsilon_text(found.epsilon)}, {how}"), ("delta", delta)]
    )
