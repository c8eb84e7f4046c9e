"""TCC9xx: what a run is told."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

RUNS: Mapping[str, Entry] = {
    "TCC901": Entry(
        "no prefix of a plan",
        "A run after calls that were made already (`--after`) begins where they lead. One of\n"
        "them may not stand where it stands: no plan has it there, or a statement that the\n"
        "artifact leaves to the run forbids it. The message lists what might. Calls are\n"
        "written as `tcc run` and `tcc enumerate` print them, or as a grammar writes its\n"
        "patterns, a space between two.",
    ),
    "TCC902": Entry(
        "a request that is none",
        "A line (or a row of a table) of requests is no object of settings, or the artifact does\n"
        "not allow one of them. The message has the number of the line or row, from 1. Nothing\n"
        "was run.",
    ),
    "TCC903": Entry(
        "no table of requests",
        "The file is no Parquet table, or has a column that is no setting or of another type than\n"
        "the setting. The columns are the names of settings; `seed` has to be there.",
    ),
    "TCC904": Entry(
        "a text that is no call",
        "A call is the name of a tool and, where it has any, its parameters in parentheses:\n"
        "`find(k=3, via=web)`. As in a grammar blanks go anywhere between words, parameters\n"
        "stand in any order, names and values may be in quotes, and a comma may follow the last\n"
        "one; each parameter is there once, with one value. The message shows where the text\n"
        "stops being a call, and what would go on with it.",
    ),
}
