"""TCC8xx: files that are written."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

OUTPUTS: Mapping[str, Entry] = {
    "TCC801": Entry(
        "output that is no regular file",
        "What is to be written has the name of a folder, a device, a named pipe or a socket, or\n"
        "of a link that leads nowhere. Only a regular file is ever replaced, with --overwrite\n"
        "too; a link to one is followed, and stays. Name another file, or remove what is there.",
    ),
    "TCC802": Entry(
        "a folder of another batch",
        "A batch in shards goes on in a folder that has the same batch: same artifact, same\n"
        "requests, same size and format of its parts, and, where it is told, same time. The\n"
        "message names what differs, or what else is there. Name another folder, or replace\n"
        "the batch that is there (--overwrite).",
    ),
    "TCC803": Entry(
        "a batch under way in this folder",
        "Another process makes a batch there. Nothing was changed. Wait for its end, or name\n"
        "another folder.",
    ),
    "TCC804": Entry(
        "no batch that can be read",
        "The folder has no `batch.json`, or one that is cut off, altered or of another format;\n"
        "or the batch has no ledgers to validate. Name the folder of a batch; one that is\n"
        "damaged is made anew with --overwrite.",
    ),
    "TCC805": Entry(
        "a worker that does not see the files",
        "All workers of a batch read and write its folder, and an executor's workers read the\n"
        "file of the artifact too. Put them where all workers find them by the same name.",
    ),
    "TCC806": Entry(
        "requests that were changed",
        "The requests are read before the first run and again as they are made, and were not\n"
        "the same. Parts that were made from others are made again when the batch goes on.",
    ),
    "TCC807": Entry(
        "an extra that is not installed",
        "What was asked for needs packages that do not come with the base install. The message\n"
        "names the extra.",
    ),
    "TCC808": Entry(
        "a part that cannot be written",
        "The system refused: the disk is full, or the folder may not be written. Nothing of the\n"
        "part stays; what is finished does, and the same command goes on from there.",
    ),
    "TCC809": Entry(
        "a ledger too large for a part",
        "A worker holds one ledger at a time in memory, of at most 256 MiB. Cap the run\n"
        "(`max_expansions`), or make the batch without shards: there each ledger is a file.",
    ),
    "TCC810": Entry(
        "no scheduler, or no worker",
        "No scheduler of Dask answers at the address in time, or it has no worker. Check the\n"
        "address and that it can be reached; `--dask local` starts a cluster of its own.",
    ),
    "TCC811": Entry(
        "a part or a ledger that is missing or damaged",
        "A finding of `tcc batch --validate`: a part is not there, is cut off or altered, or a\n"
        "result has no ledger. The command that made the batch in shards makes such parts again.",
    ),
    "TCC812": Entry(
        "a result that is not that of its ledger",
        "A finding of `tcc batch --validate`: the ledger is valid, and the result beside it says\n"
        "something else. Believe the ledger.",
    ),
}
