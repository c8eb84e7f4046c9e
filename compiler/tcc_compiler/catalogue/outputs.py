"""TCC8xx: files that are written."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.catalogue.entry import Entry

OUTPUTS: Mapping[str, Entry] = {
    "TCC801": Entry(
        "output that is no regular file",
        "What is to be written has the name of a folder, a device, a named pipe or a socket, or\n"
        "of a link that leads nowhere. Only a regular file is ever replaced, with --overwrite\n"
        "too; a link to one is followed, and stays. Name another file, or remove what is there.",
    ),
}
