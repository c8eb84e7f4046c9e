"""``tcc explain``: explains a code, with an example and its fix."""

from __future__ import annotations

import difflib
import re

import click

from tcc import screen
from tcc.code_pages import text_of, titles
from tcc.options import json_option


@click.command("explain")
@click.argument("code", required=False)
@click.option("--list", "listing", is_flag=True, help="list all codes, as without CODE")
@json_option
@click.pass_context
def command(ctx: click.Context, /, code: str | None, listing: bool, as_json: bool) -> None:
    """Explain CODE: a diagnostic such as TCC201, or a code of the kernel such as C401."""
    if code is None or listing:
        _list(as_json)
        return
    wanted = code.upper()
    text = text_of(wanted)
    if text is None:
        known = titles()
        alike = [name for name in known if re.sub("[0-9]", "", name) == re.sub("[0-9]", "", wanted)]
        near = difflib.get_close_matches(wanted, alike, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise click.BadParameter(f"there is no code {code!r}.{hint}", ctx, param_hint="CODE")
    if as_json:
        from tcc.outputs.verdicts import ExplainOutput

        screen.print_output(ExplainOutput(code=wanted, text=text))
    else:
        screen.say_lines(text)


def _list(as_json: bool) -> None:
    known = titles()
    if as_json:
        from tcc.outputs.verdicts import CodeListOutput, CodeTitleJson

        codes = [CodeTitleJson(code=code, title=text) for code, text in known.items()]
        screen.print_output(CodeListOutput(codes=codes))
    else:
        screen.print_fields(known.items())
