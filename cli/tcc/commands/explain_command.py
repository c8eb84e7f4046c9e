"""``tcc explain``: what a diagnostic code means, with an example and its mend."""

from __future__ import annotations

import difflib
import re

import click

from tcc import screen
from tcc.codes import explain_code, title
from tcc.opening import json_option
from tcc_certs.errors import Code
from tcc_compiler.catalogue import CATALOGUE, explain


@click.command("explain")
@click.argument("code", required=False)
@click.option("--list", "listing", is_flag=True, help="all codes; so does no CODE")
@json_option
@click.pass_context
def command(ctx: click.Context, /, code: str | None, listing: bool, as_json: bool) -> None:
    """Explain CODE: a diagnostic such as TCC201, or a code of the kernel such as C401."""
    if code is None or listing:
        _list(as_json)
        return
    wanted = code.upper()
    text = explain(wanted) or explain_code(wanted)
    if text is None:
        known = _titles()
        alike = [name for name in known if re.sub("[0-9]", "", name) == re.sub("[0-9]", "", wanted)]
        near = difflib.get_close_matches(wanted, alike, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise click.BadParameter(f"there is no code {code!r}.{hint}", ctx, param_hint="CODE")
    if as_json:
        screen.print_json("explain", {"code": wanted, "text": text})
    else:
        screen.say_lines(text)


def _titles() -> dict[str, str]:
    """Every code with what is wrong in a few words."""
    pages = {code: entry.title for code, entry in CATALOGUE.items()}
    return pages | {code.value: title(code) for code in Code}


def _list(as_json: bool) -> None:
    titles = _titles()
    if as_json:
        codes = [{"code": code, "title": text} for code, text in titles.items()]
        screen.print_json("explain", {"codes": codes})
    else:
        screen.print_fields(titles.items())
