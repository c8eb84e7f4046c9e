"""TCC6xx: imported graphs and tools; TCC8xx: files, pins, signatures, changes; TCC9xx: runs."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

# TCC6xx: graphs that come in as node-link JSON or GraphML.

IMPORTS: Mapping[str, Entry] = {
    "TCC601": Entry(
        "graph file that cannot be parsed",
        "The file ends in `.json` and is no JSON, or in `.graphml` and is no XML of that\n"
        "kind. JSON objects name each member once, and numbers are finite.",
        '{"directed": true, "nodes": [}',
    ),
    "TCC602": Entry(
        "declarations in XML",
        "A GraphML file that declares a document type or entities is refused, whatever they\n"
        "say: entities can stand for gigabytes or for other files.",
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
        'A graph marks one node at least with `"start": true`, and one with `"goal": true`\n'
        '(in a graph of states `"accept": true` says the same); and some path leads from the\n'
        "one to the other.",
        '{"directed": true, "nodes": [{"id": "a"}], "links": []}',
    ),
    "TCC606": Entry(
        "not the text of a call",
        "A call reads `tool` or `tool(parameter=value,..)`: names are identifiers and no\n"
        "reserved words, values identifiers, decimals or JSON strings. Calls of one tool name\n"
        "their parameters in one order; one that some leave out is optional.",
        '{"directed": true, "nodes": [{"id": "web search", "start": true, "goal": true}],'
        ' "links": []}',
    ),
    "TCC607": Entry(
        "two kinds of graph in one",
        "In a graph of states every edge has a `call`; in a graph of tools none has. The\n"
        "message names an edge that has none while others have.",
        '{"directed": true, "nodes": [{"id": 1, "start": true}, {"id": 2, "goal": true}],\n'
        ' "links": [{"source": 1, "target": 2, "call": "a"}, {"source": 2, "target": 2}]}',
    ),
    "TCC608": Entry(
        "one call with different amounts",
        "Cost, price, latency and epsilon belong to the call: wherever it stands in the graph\n"
        "they are the same.",
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
        "says, or the file is no result of `tools/list`. The message says what is wrong. Noise\n"
        "that a server prints between its messages is passed over.",
    ),
    "TCC612": Entry(
        "a tool is left out",
        "A warning: the tool has a name, or requires an argument, that a grammar cannot write, so\n"
        "the skeleton does not have it. What a grammar does not have can never be called.",
    ),
    "TCC613": Entry(
        "a schema is not held whole",
        "A warning: the schema of a tool says more than the skeleton does. Without it the gate\n"
        "passes on what the server itself has to refuse, or refuses what the server would take;\n"
        "the message says which. The same stands as a comment beside the tool.",
    ),
}


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


# TCC84x to TCC86x: pinned artifacts, signed statements, changes that break.

CHECKS: Mapping[str, Entry] = {
    "TCC841": Entry(
        "no lock of artifacts",
        "`tcc check --locked` compares artifacts with the pins in `tcc.lock`. The file is not\n"
        "there, or is not what `tcc pin` writes: JSON with the format, its version and, for each\n"
        "path below the lock's folder, digest, grammar and version. A member that is missing,\n"
        "unknown or named twice makes it malformed, so that nothing is passed by mistake.\n"
        "Write it again with `tcc pin ARTIFACT`, and look at what changed.",
    ),
    "TCC842": Entry(
        "artifact that is not pinned",
        "The lock has no pin for this path, so nobody has said that this artifact may be used.\n"
        "Look at what it allows (`tcc inspect`, `tcc diff`), then pin it: `tcc pin ARTIFACT`.",
    ),
    "TCC843": Entry(
        "artifact that is not the pinned one",
        "The artifact at this path has another digest, grammar or version than its pin. It was\n"
        "compiled again from another grammar or with other options, or was replaced. See with\n"
        "`tcc diff` what it allows that the pinned one did not, then pin it: `tcc pin ARTIFACT`.",
    ),
    "TCC844": Entry(
        "pinned artifact that is missing",
        "The lock has a pin for this path, and there is no file that can be read. Put the\n"
        "artifact there, or take the pin away: `tcc pin --remove ARTIFACT`.",
    ),
    "TCC845": Entry(
        "source that is not the pinned one",
        "The grammar that a pinned artifact was made from says another thing now, does not\n"
        "compile, or is gone; comments and layout do not matter. The artifact allows what the\n"
        "grammar said when it was pinned. Compile it anew, see with `tcc diff` what changed, and\n"
        "pin it: `tcc pin ARTIFACT`, with `--source G` where the grammar has moved, with\n"
        "`--no-source` where there is none to be held to.",
    ),
    "TCC851": Entry(
        "no envelope",
        "A signed statement is one DSSE envelope: a JSON object with `payload`, `payloadType` and\n"
        "`signatures`, each signature with `sig` and perhaps `keyid`; payload and signatures in\n"
        "standard Base64 with its padding. A member that is unknown or named twice, white space\n"
        "in Base64, or a file of more than 1 MiB is refused. Sign again with `tcc sign`.",
    ),
    "TCC852": Entry(
        "payload of another type",
        "The envelope does not hold an in-toto statement: its `payloadType` is not\n"
        "`application/vnd.in-toto+json`. It may be validly signed, but for another purpose.",
    ),
    "TCC853": Entry(
        "no signature by this key",
        "No signature of the envelope names the key that was given with --key. Its `keyid`\n"
        "is not that of the key (the SHA-256 that securesystemslib gives an Ed25519 key).\n"
        "Verify with the key of whoever signed, from a source that you trust.",
    ),
    "TCC854": Entry(
        "wrong signature",
        "The signature is not one of this payload by this key: payload or signature were\n"
        "changed after signing. Nothing that the envelope says is to be believed.",
    ),
    "TCC855": Entry(
        "no statement of tcc",
        "The signature holds, but what was signed is not a statement that `tcc sign` makes: an\n"
        "in-toto Statement v1 with one subject that has sha256 and blake3, and tcc's predicate.\n"
        "The same key may sign other things; this one says nothing of an artifact or a ledger.",
    ),
    "TCC856": Entry(
        "another file",
        "The signed statement is about a file with other bytes: sha256 or blake3 of the file\n"
        "that was given are not the statement's. The file was changed, or is another one.",
    ),
    "TCC857": Entry(
        "no Ed25519 key",
        "Keys are Ed25519 in PEM: a private one without a password to sign (PKCS 8), a public\n"
        "one to verify (SubjectPublicKeyInfo). `tcc sign --new-key KEY.pem` makes both, and so\n"
        "does `openssl genpkey -algorithm ed25519`.",
    ),
    "TCC858": Entry(
        "nothing that can be signed",
        "A statement says only what was found to be true in the same command. What was given\n"
        "is not a valid artifact, or not a ledger that its artifact (--artifact) upholds.\n"
        "`tcc check` and `tcc validate` say what is wrong with it.",
    ),
    "TCC860": Entry(
        "breaking change",
        "`tcc diff` found that the new grammar lets something through that the old one does not\n"
        "(or, with `--breaking narrower`, that it lost something). The message has the numbers\n"
        "of plans, a shortest and a cheapest one, and the statements that changed.",
    ),
}


# P5xx: why an exact question is undecided.  Each example ends with a question that is, and with
# what to write in place of something for it to be decided; tests/exact/test_codes.py asks them.

_ASKED = (
    'grammar shop version "1"\n'
    "tool find(; order: text min 1 max 9)\n"
    "tool pay(; order: text min 1 max 9, amount: integer 0 .. 200)\n"
    "plan = (find | pay){0,4}\n"
)

EXACT: Mapping[str, Entry] = {
    "P501": Entry(
        "a statement that is not covered",
        "`tcc prove` does not decide this question: the statement, or the difference of the two\n"
        "grammars, is of a kind that its search does not know, such as a tool that gives other\n"
        "parameters on the two sides, a limit below 0, a statement on records, times or look-ups,\n"
        "fields that stand in one another, or a statement that computes with a field of many\n"
        "values. The message says which. Ask about a part of it, or make the\n"
        "tools alike: `tcc prove OLD.tcg --implies NEW.tcg` wants the same `gives` on both sides.",
        _ASKED + "tool look gives (state: open | paid)\n"
        "# OTHER.tcg has `(status: open | paid)` in place of `(state: open | paid)`\n"
        "# tcc prove G.tcg --implies OTHER.tcg\n"
        "# decided with `(status: open | paid)` in place of `(state: open | paid)`\n",
    ),
    "P502": Entry(
        "spans of time",
        "Of several spans of time (`within`) each is looked at by itself: what is proved so is\n"
        "proved, and a session that was found counts if there are times for its calls. For the\n"
        "ones found here there are none, and longer ones were not looked for; or it was not\n"
        "decided whether a session can always be finished, whenever its calls were made. Write\n"
        "one span in place of several, or ask about a grammar without these statements: what is\n"
        "proved of it holds.",
        'grammar g version "1"\ntool find\ntool pay\ntool send\nplan = find pay send\n'
        "monitor forbid find within 1 h before pay\nmonitor forbid pay within 1 h before send\n"
        "monitor require find within 2 h before send\n"
        '# tcc prove G.tcg --reachable "send"\n'
        "# decided with `find within 3 h` in place of `find within 2 h`\n",
    ),
    "P503": Entry(
        "too many states",
        "The search met as many states as `--max-states` allows, or a call has too many choices\n"
        "of values. Allow more: `tcc prove G.tcg --finishable --max-states 1000000`; or ask\n"
        "about a grammar with a smaller depth: what is refuted there stays refuted.",
        _ASKED + "require find before pay same order\n"
        "# tcc prove G.tcg --finishable --max-states 2\n"
        "# decided with `--max-states 2000` in place of `--max-states 2`\n",
    ),
    "P504": Entry(
        "a sum over values that are compared",
        "An open parameter is added up by `limit sum(..)` and named in a `same` or `per`, and\n"
        "its range is too wide for its values to be looked at one by one. So each call was taken\n"
        "to add any value of the range: nothing was proved that way, and no session that was\n"
        "found replays. Give it a type `integer 0 .. 60`, say, or compare another parameter.",
        _ASKED + "limit uses(pay) per amount <= 1\n"
        '# tcc prove G.tcg "limit sum(pay.amount) <= 795"\n'
        "# decided with `integer 0 .. 60` in place of `integer 0 .. 200`\n",
    ),
    "P505": Entry(
        "types that are not counted out",
        "Which values two types have in common is found by the product of their patterns, and\n"
        "this product has too many states, or texts are too long to be counted out beside a\n"
        "pattern. Give the parameter the same type on both sides, or a smaller `max`.",
        _ASKED.replace("text min 1 max 9)", 'text ~ "[ab]{1,9}")').replace(
            "text min 1 max 9,", 'text ~ "(a|b)*b(a|b){14}",'
        )
        + "require find before pay same order\n"
        '# tcc prove G.tcg "forbid find before pay same order"\n'
        "# decided with `[ab]{1,9}` in place of `(a|b)*b(a|b){14}`\n",
    ),
    "P506": Entry(
        "a sum on a grid that doubles do not fill",
        "The values of a sum are looked at on the grid of its constants, such as 0.01. Doubles\n"
        "have every value of this grid up to fifteen digits; this range goes on beyond. Give\n"
        "the parameter a smaller range, or fewer decimal places.",
        _ASKED.replace("0 .. 200", "0 .. 10000000000000000") + "limit sum(pay.amount) <= 500\n"
        '# tcc prove G.tcg "limit sum(pay.amount) <= 250"\n'
        "# decided with `0 .. 1000` in place of `0 .. 10000000000000000`\n",
    ),
    "P507": Entry(
        "the time is over",
        "The search did not end within `--timeout`. Allow more seconds, or ask about a smaller\n"
        "depth.",
        _ASKED + "require find before pay same order\n"
        "# tcc prove G.tcca --finishable --timeout 0.000001\n"
        "# decided with `--timeout 60` in place of `--timeout 0.000001`\n",
    ),
}


# TCC9xx: what a run is told.

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
        "not a request",
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
