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
        "No plan has a call with this value of a listed parameter. An unused value is often one\n"
        "that was meant to be used, or that a statement rules out by mistake.",
        _HEAD + "tool a(k: 1 | 2) { cost 1 }\nplan = a(k=1)\n",
    ),
    "TCC704": Entry(
        "redundant limit",
        "Without this limit the plans are the same. The message says how far plans reach\n"
        "without it, the notes what implies it: the plan expression, or other statements.\n"
        "A limit on open parameters is redundant if even the largest values cannot reach it,\n"
        "or if no session that meets all other statements can exceed it.",
        _TOOLS + "plan = a b\nlimit depth <= 3\n",
    ),
    "TCC705": Entry(
        "redundant statement",
        "Without this `require` or `forbid` the plans are the same: the plan expression or\n"
        "other statements imply it, or it is written twice. It may be meant as a second lock on\n"
        "the same door; then say so: `# lint: allow TCC705` and the reason. A statement that a\n"
        "gate enforces is redundant if the sessions are the same without it.",
        _TOOLS + "plan = a b\nrequire a before b\n",
    ),
    "TCC706": Entry(
        "void statement",
        "This `require` or `forbid` is about calls that no plan has, so it cannot forbid\n"
        "anything.",
        _HEAD + "tool a(k: 1 | 2) { cost 1 } # lint: allow TCC703\n"
        "plan = a(k=1)\nforbid a(k=2) a\n",
    ),
    "TCC707": Entry(
        "contradictory statements",
        "Together, these statements leave no plan; without any one of them, the others leave\n"
        "plans. The set is a smallest one; the finding is at its last statement, the notes\n"
        "are at the others. The compiler reports TCC402 for such a grammar.\n"
        "The lint is also reported for sessions: there are plans, but monitors let no session\n"
        "finish. Limits on depth then always stay, and `tcc why G --finish` asks the same with\n"
        "more states.",
        _TOOLS + "plan = (a | b){1,3}\nlimit depth <= 2\nlimit uses(a) >= 2\nrequire b before a\n",
    ),
    "TCC708": Entry(
        "one bare word as a domain",
        "A parameter with one value, a word without quotes: that is a value, but perhaps a type\n"
        "was meant. Open parameters, which may be any text or number, are declared behind a\n"
        "semicolon: `tool order(; amount: number 0 .. 500)`. If the one value is meant, put it\n"
        "in quotes, which changes nothing else; `tcc lint --fix` does so.",
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
        "continues: a gate lets the call through, and then can allow no further call. The\n"
        "message shows a shortest way there. Say what follows that answer, or make the tool\n"
        "`strict`.",
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
        "`limit uses(..) <= n` counts calls of a tool that a server may answer with an error,\n"
        "and the tool does not say what that means: such a call is unknown, and counts. If an\n"
        "error changes nothing, write `errors mean failed` in the braces of the tool; a failed\n"
        "call does not count, and may be made again.",
        _HEAD + 'tool a { cost 1 bind mcp "s" "a" }\nplan = a*\nlimit uses(a) <= 2\n',
    ),
    "TCC718": Entry(
        "field that nothing compares",
        "An answer behind the semicolon of `gives`, or a field at a place of its own (`at`), is\n"
        "declared to be compared: in a `where`, a `same`, a `per`, a `sum` or a `let`. This one\n"
        "is read with each call, but nothing compares it.",
    ),
    "TCC719": Entry(
        "condition that no values meet",
        "No values that the fields are declared to have make this condition true: a value that\n"
        "is not listed, perhaps misspelt, a number outside its range, or a text that does not\n"
        "match its pattern. A `require` with it is never met; a `forbid` or a limit counts with\n"
        "it only what is not known.",
        _HEAD + "tool a(k: 1..3) { cost 1 }\ntool b { cost 1 }\nplan = a* b\n"
        "limit depth <= 4\nrequire a where seen.k > 3 or a where seen.k = 1 before b\n",
    ),
    "TCC720": Entry(
        "attribute from any text",
        "`let x = tool.f` takes the first known value, for the rest of the session. If f is a\n"
        "text without a pattern, an error message that the tool answers as plain text is also\n"
        "such a value, and no later answer corrects it. Give the answer a pattern that such a\n"
        "message does not match.",
    ),
    "TCC725": Entry(
        "failed calls that count for a `forbid`",
        "With `errors mean failed`, a call that the server answers with an error is a failed\n"
        "one: it counts for no `require` and no limit. But the agent has read the error, so for\n"
        "a `forbid` it counts as done, its answer unknown. If that is meant, allow the lint.",
        _HEAD + "tool a { cost 1 errors mean failed }\ntool b { cost 1 }\nplan = any*\n"
        "limit depth <= 4\nforbid a before b\n",
    ),
    "TCC726": Entry(
        "look-up of a part of the calls of its tools",
        "`let x(k) = SET` is about the latest call of SET's tools with that argument. A\n"
        "pattern, or what comes behind `-`, does not exclude calls of these tools: with `let\n"
        "x(k) = a(b=1)` a later a(b=2) is the latest call that x(k) is about, because an older\n"
        "call does not tell the present state. Name the tools, and put the condition in a\n"
        "`where`.",
        _HEAD + "tool a(b: 1 | 2; k: text) gives (; f: text) { cost 1 }\n"
        "tool c(; k: text, f: text) { cost 1 }\nplan = any*\nlimit depth <= 4\n"
        "let x(k) = a(b=1)\nrequire c where f = x(k).f\n",
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
