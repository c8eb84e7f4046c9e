"""TCC7xx: what a grammar says to no effect, and ``tcc.toml``."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

_HEAD = 'grammar g version "1"\n'
_TOOLS = _HEAD + "tool a { cost 1 }\ntool b { cost 2 }\n"

LINTS: Mapping[str, Entry] = {
    "TCC701": Entry(
        "unused tool",
        "No plan calls this tool: nothing in `plan` names it, or the statements leave no plan\n"
        "with it. Tools of files that are used (`use`) are meant for several grammars and are\n"
        "not reported.",
        _TOOLS + "plan = a\n",
    ),
    "TCC702": Entry(
        "unused rule",
        "`plan` does not refer to this rule, directly or through other rules. `tcc lint --fix`\n"
        "removes it.",
        _TOOLS + "rule r = a\nplan = a b\n",
    ),
    "TCC703": Entry(
        "unused value",
        "No plan has a call with this value of a listed field. An unused value is often one\n"
        "that was meant to be used, or that a statement rules out by mistake.",
        _HEAD + "tool a(k: 1 | 2) { cost 1 }\nplan = a(k=1)\n",
    ),
    "TCC708": Entry(
        "one bare word as a domain",
        "A field has one value, a word without quotes: that is a value, but perhaps a type was\n"
        "meant, such as `text`, `integer` or `number 0 .. 500`. If the one value is meant, put\n"
        "it in quotes, which changes nothing else; `tcc lint --fix` does so.",
        _HEAD + "tool a(mode: fast) { cost 1 }\nplan = a\n",
    ),
    "TCC709": Entry(
        "no costs",
        "No tool has a cost, so every plan costs 0 and a search has no reason to prefer one. A\n"
        "grammar that only guards sessions needs no costs: allow the lint.",
        _HEAD + "tool a\nplan = a\n",
    ),
    "TCC710": Entry(
        "tool without a cost",
        "Other tools have a cost, and this one counts as 0. `cost 0` says that this is meant.",
        _HEAD + "tool a { cost 1 }\ntool b\nplan = a b\n",
    ),
    "TCC711": Entry(
        "expectation that can no longer fail",
        "An `accept`, `reject` or `expect` that cannot fail: another one implies it, the tools\n"
        "alone do, or, for a `reject`, nothing in `plan` names one of its calls any more. It\n"
        "tests nothing.",
        _TOOLS + "plan = a b\naccept a b\nexpect plans >= 1\n",
    ),
    "TCC712": Entry(
        "answer that leads nowhere",
        "A tool with `gives` may be called here, and after one of its answers no plan\n"
        "continues: a gate allows the call, and can then allow no further call. The message\n"
        "shows a shortest way there. Say what follows that answer, or make the tool `strict`.",
        _HEAD + "tool a gives (r: yes | no) { cost 1 }\ntool b { cost 1 }\nplan = a(r=yes) b\n",
    ),
    "TCC713": Entry(
        "search that is predicted to be long",
        "A run with these options is predicted to take more expansions than `long-search` of\n"
        "`tcc.toml` (by default 100000). A larger `--beta` makes the cheapest plans\n"
        "win more often, and searches shorter; a larger `--tilt` helps, too.",
    ),
    "TCC714": Entry(
        "comment that allows nothing",
        "A `# lint:` comment names no code of a lint, or allows a lint that is not reported\n"
        "here. An allowance is at the end of a line of its statement, or\n"
        "before `grammar` for the whole file.",
        _TOOLS + "plan = a b # lint: allow TCC702\n",
    ),
    "TCC715": Entry(
        "lints that were not decided",
        "A limit on states or time was reached, and these lints remained open. This is no\n"
        "finding; the exit code is 2 if there is nothing else. Raise `--max-states` or\n"
        "`--timeout`.",
    ),
    "TCC717": Entry(
        "errors of a counted tool",
        "The limit counts calls of a tool that a server may answer with an error, and the tool\n"
        "does not say what an error means: such a call is unknown, and counts. If an error\n"
        "changes nothing, write `errors mean failed` in the braces of the tool. A failed call\n"
        "does not count, and may be made again.",
        _HEAD + 'tool a { cost 1 bind mcp "s" "a" }\nplan = a*\nlimit count(a) <= 2\n',
    ),
}
CONFIGURATION: Mapping[str, Entry] = {
    "TCC721": Entry(
        "tcc.toml that cannot be read",
        "It is not a regular file in UTF-8 of at most 64 KiB. `--no-config` reads none.",
    ),
    "TCC722": Entry(
        "tcc.toml that is no TOML",
        "The message says what was expected, at its line.",
    ),
    "TCC723": Entry(
        "unknown key in tcc.toml",
        "If the file has an unknown key, none of it is used: a misspelt key would otherwise be\n"
        "ignored silently. docs/lint.md lists the keys.",
    ),
    "TCC724": Entry(
        "value in tcc.toml",
        "The value is of another type than its key requires, or is out of range.",
    ),
}
