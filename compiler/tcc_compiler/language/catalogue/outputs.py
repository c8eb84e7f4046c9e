"""TCC6xx: imported graphs and tools; TCC8xx: files, pins, signatures, changes; TCC9xx: runs."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

# TCC6xx: graphs that are imported from node-link JSON or GraphML.

IMPORTS: Mapping[str, Entry] = {
    "TCC601": Entry(
        "graph file that cannot be parsed",
        "The file ends in `.json` and is no JSON, or in `.graphml` and is no GraphML.\n"
        "JSON objects name each member once, and numbers are finite.",
        '{"directed": true, "nodes": [}',
    ),
    "TCC602": Entry(
        "declarations in XML",
        "A GraphML file that declares a document type or entities is refused, whatever the\n"
        "declarations say: entities can expand to gigabytes or to other files.",
    ),
    "TCC603": Entry(
        "graph of the wrong shape",
        'Node-link JSON is an object with `"directed": true`, `nodes` with distinct `id` (a\n'
        "text or an integer) and `edges` or `links` whose `source` and `target` are such ids.\n"
        "The message names what is missing or of the wrong type.",
        '{"directed": true, "nodes": [{"id": "a"}, {"id": "a"}], "links": []}',
    ),
    "TCC604": Entry(
        "attribute of the wrong type",
        "`cost`, `price`, `latency_ms` and `epsilon` are finite numbers, or texts of\n"
        "decimals; `depth` is a whole number, zero or more; `start`, `goal` and `accept` are\n"
        "booleans; `name` is an identifier and `version` a text.",
        '{"directed": true, "nodes": [{"id": "a", "start": true, "goal": true, "price": "free"}],'
        ' "links": []}',
    ),
    "TCC605": Entry(
        "no start, or no goal",
        'A graph marks at least one node with `"start": true`, and at least one with `"goal":\n'
        'true` (in a graph of states `"accept": true` means the same); and some path leads from\n'
        "a start to a goal.",
        '{"directed": true, "nodes": [{"id": "a"}], "links": []}',
    ),
    "TCC606": Entry(
        "not the text of a call",
        "A call is written `tool` or `tool(parameter=value,..)`. A name is an identifier or a\n"
        "JSON string without a backtick. A value is an identifier, a decimal or a JSON string.\n"
        "Calls of one tool name their parameters in one order. A parameter that some calls leave\n"
        "out is optional.",
        '{"directed": true, "nodes": [{"id": "web search", "start": true, "goal": true}],'
        ' "links": []}',
    ),
    "TCC607": Entry(
        "two kinds of graph in one",
        "In a graph of states every edge has a `call`; in a graph of tools none has one. The\n"
        "message names an edge without a call although others have one.",
        '{"directed": true, "nodes": [{"id": 1, "start": true}, {"id": 2, "goal": true}],\n'
        ' "links": [{"source": 1, "target": 2, "call": "a"}, {"source": 2, "target": 2}]}',
    ),
    "TCC608": Entry(
        "one call with different amounts",
        "Cost, price, latency and epsilon belong to the call: they are the same wherever the\n"
        "call occurs in the graph.",
        '{"directed": true, "nodes": [{"id": 1, "start": true}, {"id": 2, "goal": true}],\n'
        ' "links": [{"source": 1, "target": 2, "call": "a", "cost": 1},\n'
        '           {"source": 2, "target": 2, "call": "a", "cost": 2}]}',
    ),
    "TCC609": Entry(
        "graph too large",
        "A graph file has at most 8 MiB, 65536 nodes and 262144 edges.",
    ),
    "TCC611": Entry(
        "no list of tools",
        "`tcc import mcp` found no list of tools: the server did not answer, or not as MCP\n"
        "requires, or the file is no result of `tools/list`. The message says what is wrong.\n"
        "Other output of a server between its messages is ignored.",
    ),
    "TCC612": Entry(
        "a tool is left out",
        "A warning: the tool has a name, or requires an argument, that a grammar cannot\n"
        "express, so the skeleton does not have it. A tool that a grammar does not have can\n"
        "never be called.",
    ),
    "TCC613": Entry(
        "a schema is not held whole",
        "A warning: the schema of a tool says more than the skeleton can. The gate therefore\n"
        "lets arguments through that the server has to refuse, or refuses arguments that the\n"
        "server would accept; the message says which. A comment beside the tool says the same.",
    ),
}


OUTPUTS: Mapping[str, Entry] = {
    "TCC801": Entry(
        "output that is no regular file",
        "The output has the name of a folder, a device, a named pipe or a socket, or of a link\n"
        "that leads nowhere. Only a regular file is ever replaced, with --overwrite, too; a\n"
        "link to one is followed, and stays. Name another file, or remove the existing one.",
    ),
    "TCC802": Entry(
        "a folder of another batch",
        "A batch in shards resumes in a folder that has the same batch: the same artifact, the\n"
        "same requests, the same size and format of its parts, and the same time, if one is\n"
        "given. The message names the difference, or what else is in the folder. Name another\n"
        "folder, or replace the batch in it (--overwrite).",
    ),
    "TCC803": Entry(
        "a batch under way in this folder",
        "Another process is making a batch there. Nothing was changed. Wait for its end, or\n"
        "name another folder.",
    ),
    "TCC804": Entry(
        "no batch that can be read",
        "The folder has no `batch.json`, or one that is cut off, altered or of another format;\n"
        "or the batch has no ledgers to validate. Name the folder of a batch; --overwrite makes\n"
        "a damaged one again.",
    ),
    "TCC805": Entry(
        "a worker that does not see the files",
        "All workers of a batch read and write its folder, and an executor's workers read the\n"
        "file of the artifact, too. Put these where all workers find them under the same name.",
    ),
    "TCC806": Entry(
        "requests that were changed",
        "The requests are read before the first run and again as the runs are made, and were\n"
        "not the same. Parts that were made from other requests are made again when the batch\n"
        "resumes.",
    ),
    "TCC807": Entry(
        "an extra that is not installed",
        "The command needs packages that do not come with the base install. The message\n"
        "names the extra.",
    ),
    "TCC808": Entry(
        "a part that cannot be written",
        "The system refused to write: the disk is full, or the folder may not be written.\n"
        "Nothing of the part stays; finished parts do, and the same command resumes from there.",
    ),
    "TCC809": Entry(
        "a ledger too large for a part",
        "A worker keeps one ledger at a time in memory, of at most 256 MiB. Cap the run\n"
        "(`max_expansions`), or make the batch without shards: there each ledger is a file.",
    ),
    "TCC810": Entry(
        "no scheduler, or no worker",
        "No scheduler of Dask answers at the address in time, or it has no worker. Check the\n"
        "address and that it can be reached; `--dask local` starts a cluster of its own.",
    ),
    "TCC811": Entry(
        "a part or a ledger that is missing or damaged",
        "A finding of `tcc batch --validate`: a part is missing, cut off or altered, or a\n"
        "result has no ledger. The command that made the batch in shards makes such parts\n"
        "again.",
    ),
    "TCC812": Entry(
        "a result that is not that of its ledger",
        "A finding of `tcc batch --validate`: the ledger is valid, and the result beside it\n"
        "says something else. Believe the ledger.",
    ),
}


# TCC84x to TCC86x: pinned artifacts, signed statements, changes that break.

CHECKS: Mapping[str, Entry] = {
    "TCC841": Entry(
        "no lock of artifacts",
        "`tcc check --locked` compares artifacts with the pins in `tcc.lock`. The file does not\n"
        "exist, or is not what `tcc pin` writes: JSON with the format, its version and, for\n"
        "each path below the lock's folder, digest, grammar and version. A member that is\n"
        "missing, unknown or repeated makes it malformed, so that nothing passes by mistake.\n"
        "Write it again with `tcc pin ARTIFACT`, and look at what changed.",
    ),
    "TCC842": Entry(
        "artifact that is not pinned",
        "The lock has no pin for this path, so nobody has said that this artifact may be used.\n"
        "Look at what it allows (`tcc inspect`, `tcc diff`), then pin it: `tcc pin ARTIFACT`.",
    ),
    "TCC843": Entry(
        "artifact that is not the pinned one",
        "The artifact at this path has another digest, grammar or version than its pin. The\n"
        "message names the lock file, the pin in it, and both values of each member that\n"
        "differs. Somebody compiled the artifact again from another grammar or with other\n"
        "options, or replaced it. Take the pinned artifact from your version control, and let\n"
        "`tcc diff OLD ARTIFACT` show what is allowed now. Then pin it: `tcc pin ARTIFACT`.",
    ),
    "TCC844": Entry(
        "pinned artifact that is missing",
        "The lock has a pin for this path, but there is no readable file. Put the\n"
        "artifact there, or remove the pin: `tcc pin --remove ARTIFACT`.",
    ),
    "TCC845": Entry(
        "source that is not the pinned one",
        "The grammar of a pinned artifact has changed, does not compile, or is gone; comments\n"
        "and layout do not matter. If the artifact was not compiled from the grammar as it is\n"
        "now, the message names the statements that differ: compile it again. If it was, but\n"
        "the pin is older, the message names the lock file and the digests of both cores. Look\n"
        "with `tcc diff` at what changed, and pin it: `tcc pin ARTIFACT`, with `--source G` if\n"
        "the grammar has moved, or with `--no-source` if the artifact has no source.",
    ),
    "TCC851": Entry(
        "no envelope",
        "A signed statement is one DSSE envelope: a JSON object with `payload`, `payloadType`\n"
        "and `signatures`, each signature with `sig` and optionally `keyid`; payload and\n"
        "signatures in standard Base64 with its padding. A member that is unknown or repeated,\n"
        "white space in Base64, or a file of more than 1 MiB is refused. Sign again with `tcc\n"
        "sign`.",
    ),
    "TCC852": Entry(
        "payload of another type",
        "The envelope does not hold an in-toto statement: its `payloadType` is not\n"
        "`application/vnd.in-toto+json`. It may be validly signed, but for another purpose.",
    ),
    "TCC853": Entry(
        "no signature by this key",
        "No signature of the envelope names the key that --key gives: no `keyid` is that of the\n"
        "key (the SHA-256 that securesystemslib computes for an Ed25519 key).\n"
        "Verify with the key of the signer, from a source that you trust.",
    ),
    "TCC854": Entry(
        "wrong signature",
        "The signature is not one of this payload by this key: payload or signature were\n"
        "changed after signing. Believe nothing that the envelope says.",
    ),
    "TCC855": Entry(
        "no statement of tcc",
        "The signature is right, but the signed payload is not a statement that `tcc sign`\n"
        "makes: an in-toto Statement v1 with one subject that has sha256 and blake3, and tcc's\n"
        "predicate. The same key may sign other things; this one says nothing about an artifact\n"
        "or a ledger.",
    ),
    "TCC856": Entry(
        "another file",
        "The signed statement is about a file with other bytes: sha256 or blake3 of the given\n"
        "file differ from those of the statement. The file was changed, or is another one.",
    ),
    "TCC857": Entry(
        "no Ed25519 key",
        "Keys are Ed25519 in PEM: a private one without a password to sign (PKCS 8), a public\n"
        "one to verify (SubjectPublicKeyInfo). `tcc sign --new-key KEY.pem` makes both, and so\n"
        "does `openssl genpkey -algorithm ed25519`.",
    ),
    "TCC858": Entry(
        "nothing that can be signed",
        "A statement says only what the same command found to be true. FILE is not a valid\n"
        "artifact, and not a ledger that is valid over its artifact (--artifact).\n"
        "`tcc check` and `tcc validate` say what is wrong with it.",
    ),
    "TCC860": Entry(
        "breaking change",
        "`tcc diff` found that the new grammar lets something through that the old one does not\n"
        "(or, with `--breaking narrower`, that it lost something). The message has the numbers\n"
        "of plans, a shortest and a cheapest one, and the statements that changed.",
    ),
}


# TCC9xx: inputs of a run.

RUNS: Mapping[str, Entry] = {
    "TCC901": Entry(
        "no prefix of a plan",
        "A run after calls that were already made (`--after`) begins where they lead. One of\n"
        "the calls is not possible at its position: no plan has it there, or a statement that\n"
        "the artifact leaves to the run forbids it. The message lists the calls that are\n"
        "possible. Calls are written as `tcc run` and `tcc enumerate` print them, or as\n"
        "patterns of a grammar, separated by spaces.",
    ),
    "TCC902": Entry(
        "not a request",
        "A line (or a row of a table) of requests is no object of settings, or the artifact\n"
        "does not allow one of the settings. The message has the number of the line or row,\n"
        "from 1. Nothing was run.",
    ),
    "TCC903": Entry(
        "no table of requests",
        "The file is no Parquet table, or has a column that is no setting or has another type\n"
        "than the setting. The columns are the names of settings; `seed` is required.",
    ),
    "TCC904": Entry(
        "a text that is no call",
        "A call is the name of a tool and its parameters in parentheses, if it has any:\n"
        "`find(k=3, via=web)`. As in a grammar, blanks are allowed between words, parameters\n"
        "come in any order, names and values may be in quotes, and a comma may follow the last\n"
        "parameter; each parameter occurs once, with one value. The message shows where the\n"
        "text stops being a call, and what would continue it.",
    ),
}
