"""The catalogue of diagnostics: code -> title, explanation, example.

A code keeps its meaning for ever.  TCC1xx syntax, 2xx names and files, 3xx values and limits, 4xx
the language of plans, 5xx examples and expectations, 6xx imported graphs, 8xx files that are
written; 7xx are for lints.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.catalogue.entry import Entry
from tcc_compiler.catalogue.imports import IMPORTS
from tcc_compiler.catalogue.language import EXAMPLES, LANGUAGE
from tcc_compiler.catalogue.names import NAMES
from tcc_compiler.catalogue.outputs import OUTPUTS
from tcc_compiler.catalogue.syntax import SYNTAX
from tcc_compiler.catalogue.values import VALUES

SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "Syntax": SYNTAX,
    "Names and files": NAMES,
    "Values and limits": VALUES,
    "The language of plans": LANGUAGE,
    "Examples and expectations": EXAMPLES,
    "Imported graphs": IMPORTS,
    "Files that are written": OUTPUTS,
}
CATALOGUE: Mapping[str, Entry] = {
    code: entry for section in SECTIONS.values() for code, entry in section.items()
}
_PREFACE = """\
Made from the catalogue in `compiler/tcc_compiler/catalogue/`; do not edit by hand.
`python -m tcc_compiler.catalogue docs/errors.md` writes it again. A code keeps its meaning for
ever."""


def explain(code: str) -> str | None:
    """The page of a code as plain text, None where there is no such code."""
    entry = CATALOGUE.get(code)
    if entry is None:
        return None
    parts = [f"{code}: {entry.title}", entry.explanation]
    if entry.example:
        indented = "\n".join(f"    {line}".rstrip() for line in entry.example.splitlines())
        parts.append(f"For example:\n\n{indented}")
    return "\n\n".join(parts)


def page() -> str:
    """docs/errors.md, whole."""
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
