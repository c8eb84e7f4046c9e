"""Names that are declared: what may be the name of a tool or of a parameter.

Normative text: docs/spec/language.md, section 2.  Cost: linear in the name.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.formats.names import MAX_NAME
from tcc_certs.plain import hidden_in
from tcc_compiler.language.ast.leaves import Word
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.words import BLOCK_WORDS


def declared_name(name: Word, taken: Mapping[str, Region], report: Report) -> bool:
    """Whether a parameter may have this name, which none of `taken` has; else it is reported."""
    if name.text in BLOCK_WORDS and not name.quoted:
        message = f"{quote(name.text)} begins an attribute, and cannot name a parameter"
        report.error("TCC208", name.region, message, f'write "{name.text}" in quotes')
        return False
    if name.text in taken:
        message = f"parameter {quote(name.text)} is declared twice"
        note = [("first declared here", taken[name.text])]
        report.error("TCC201", name.region, message, "take one away, or rename it", note)
        return False
    return plain_name(name, report)


def plain_name(name: Word, report: Report) -> bool:
    """Whether a name is short enough, and shows all of its characters; else reported."""
    hidden = hidden_in(name.text)
    if not name.text:
        message = "a name in quotes has a character at least"
        hint = "write its name between the quotes"
    elif len(name.text) > MAX_NAME:
        message = f"this name has {len(name.text)} characters; {MAX_NAME} are the most"
        hint = "choose a shorter one"
    elif hidden is not None:
        message = f"this name holds U+{ord(hidden):04X}, a control or hidden character"
        hint = "leave it out: a name is shown on terminals and in logs"
    else:
        return True
    report.error("TCC113", name.region, message, hint)
    return False
