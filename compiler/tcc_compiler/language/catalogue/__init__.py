"""The catalogue of diagnostics: code -> title, explanation, example.

A code keeps its meaning for ever. The first digits give the subject:

TCC1xx syntax; 2xx names and files; 3xx values and limits; 4xx the language of plans;
5xx examples and expectations; 6xx imported graphs and tools; 70x and 71x lints; 72x tcc.toml;
73x and 74x lints of policies; 8xx files that are written; 84x pins; 85x signatures;
86x changes; 9xx runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue import lints, outputs, statements, syntax, values
from tcc_compiler.language.catalogue.entry import Entry

SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "Syntax": syntax.SYNTAX,
    "Names and files": syntax.NAMES,
    "Statements of policies": statements.STATEMENTS,
    "Values and limits": values.VALUES,
    "The language of plans": values.LANGUAGE,
    "Examples and expectations": values.EXAMPLES,
    "Imported graphs and tools": outputs.IMPORTS,
    "Lints": lints.LINTS,
    "tcc.toml": lints.CONFIGURATION,
    "Files that are written": outputs.OUTPUTS,
    "Pins, signatures and changes": outputs.CHECKS,
    "Runs": outputs.RUNS,
}
CATALOGUE: Mapping[str, Entry] = {
    code: entry for section in SECTIONS.values() for code, entry in section.items()
}
_PREFACE = """\
The compiler's diagnostics, the lints, and the codes of commands. `tcc explain CODE` explains these,
and the codes of the kernel, of gates and of the other parts as well. A code keeps its meaning for
ever.

`python -m tcc_compiler.language.catalogue docs/errors.md` makes this page from the catalogue in
`compiler/tcc_compiler/language/catalogue/`; do not edit it."""


def explain(code: str) -> str | None:
    """Return the page of a code as plain text; None if there is no such code."""
    entry = CATALOGUE.get(code)
    if entry is None:
        return None
    parts = [f"{code}: {entry.title}", entry.explanation]
    if entry.example:
        indented = "\n".join(f"    {line}".rstrip() for line in entry.example.splitlines())
        parts.append(f"For example:\n\n{indented}")
    return "\n\n".join(parts)


def page() -> str:
    """Return the text of docs/errors.md."""
    parts = [
        "# Diagnostics",
        _PREFACE,
    ]
    for title, section in SECTIONS.items():
        parts.append(f"## {title}")
        for code, entry in section.items():
            parts.append(f"### {code}: {entry.title}")
            parts.append(entry.explanation)
            if entry.example:
                language = "json" if code.startswith("TCC6") else "tcg"
                parts.append(f"```{language}\n{entry.example.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
