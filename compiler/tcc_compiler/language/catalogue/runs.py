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
        "canonical texts, as `tcc run` and `tcc enumerate` print them, a space between two.",
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
}
