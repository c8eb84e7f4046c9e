"""TCC6xx: graphs that come in as node-link JSON or GraphML."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

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
