"""TCC7xx: what a grammar says to no effect, and ``tcc.toml``."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

_HEAD = 'grammar g version "1"\n'
_TOOLS = _HEAD + "tool a { cost 1 }\ntool b { cost 2 }\n"

LINTS: Mapping[str, Entry] = {
    "TCC701": Entry(
        "unused tool",
        "No plan calls this tool: nothing of `plan` names it, or the statements leave no plan\n"
        "with it. Tools of files that are used (`use`) are for several grammars and are not\n"
        "looked at.",
        _TOOLS + "plan = a\n",
    ),
    "TCC702": Entry(
        "unused rule",
        "`plan` does not lead to this rule. `tcc lint --fix` takes it out.",
        _TOOLS + "rule r = a\nplan = a b\n",
    ),
    "TCC703": Entry(
        "unused value",
        "No plan has a call with this value of a listed parameter. A value that is never used\n"
        "is often one that was meant to be, or that a statement rules out by mistake.",
        _HEAD + "tool a(k: 1 | 2) { cost 1 }\nplan = a(k=1)\n",
    ),
    "TCC704": Entry(
        "redundant limit",
        "Without this limit the plans are the same. The message says how far plans reach\n"
        "without it, the notes what implies it: the plan expression, or other statements.\n"
        "A limit on open parameters is redundant where even the largest values cannot reach it,\n"
        "or where no session can exceed it that meets all other statements.",
        _TOOLS + "plan = a b\nlimit depth <= 3\n",
    ),
    "TCC705": Entry(
        "redundant statement",
        "Without this `require` or `forbid` the plans are the same: the plan expression or\n"
        "other statements imply it, or it is said twice. It may be meant as a second lock on\n"
        "the same door; then say so: `# lint: allow TCC705` and the reason. One that a gate\n"
        "holds is redundant where the sessions are the same without it.",
        _TOOLS + "plan = a b\nrequire a before b\n",
    ),
    "TCC706": Entry(
        "void statement",
        "This `require` or `forbid` is about calls that no plan has, so there is nothing that\n"
        "it could forbid.",
        _HEAD + "tool a(k: 1 | 2) { cost 1 } # lint: allow TCC703\n"
        "plan = a(k=1)\nforbid a(k=2) a\n",
    ),
    "TCC707": Entry(
        "contradictory statements",
        "These statements leave no plan together, and without any one of them the others leave\n"
        "plans. The set is a smallest one; the finding stands at its last statement, the notes\n"
        "at the others. The compiler says TCC402 of such a grammar.\n"
        "It is also found of sessions: plans end, and monitors let no session finish. Then limits\n"
        "on depth are held throughout, and `tcc why G --finish` asks the same with more states.",
        _TOOLS + "plan = (a | b){1,3}\nlimit depth <= 2\nlimit uses(a) >= 2\nrequire b before a\n",
    ),
    "TCC708": Entry(
        "one bare word as a domain",
        "A parameter with one value, a word without quotes: that is a value, and was perhaps\n"
        "meant as a type. Open parameters, which may be any text or number, stand behind a\n"
        "semicolon: `tool order(; amount: number 0 .. 500)`. Where the one value is meant, put\n"
        "it in quotes, which changes nothing else; `tcc lint --fix` does.",
        _HEAD + "tool a(mode: fast) { cost 1 }\nplan = a\n",
    ),
    "TCC709": Entry(
        "no costs",
        "No tool has a cost, so every plan costs 0 and a search has nothing to choose by. A\n"
        "grammar that only guards a session needs none: allow it.",
        _HEAD + "tool a\nplan = a\n",
    ),
    "TCC710": Entry(
        "tool without a cost",
        "Other tools have a cost, and this one counts as 0. `cost 0` says that this is meant.",
        _HEAD + "tool a { cost 1 }\ntool b\nplan = a b\n",
    ),
    "TCC711": Entry(
        "expectation that can no longer fail",
        "An `accept`, `reject` or `expect` that holds whatever becomes of the grammar: another\n"
        "one implies it, the tools alone do, or, of a `reject`, nothing of `plan` names one of\n"
        "its calls any more. It tests nothing.",
        _TOOLS + "plan = a b\naccept a b\nexpect plans >= 1\n",
    ),
    "TCC712": Entry(
        "answer that leads nowhere",
        "A tool with `gives` may be called here, and with one of its answers no plan goes on:\n"
        "a gate lets the call through, and then has nothing left that it may allow. The message\n"
        "shows a shortest way there. Say what follows that answer, or make the tool `strict`.",
        _HEAD + "tool a gives (r: yes | no) { cost 1 }\ntool b { cost 1 }\nplan = a(r=yes) b\n",
    ),
    "TCC713": Entry(
        "search that is predicted to be long",
        "A run with these options is predicted to take more expansions than `long-search` of\n"
        "`tcc.toml` (100000 where it says nothing). A larger `--beta` makes the cheapest plans\n"
        "win more often, and searches shorter; a larger `--tilt` helps, too.",
    ),
    "TCC714": Entry(
        "comment that allows nothing",
        "A `# lint:` comment has no code that is one of a lint, or allows a lint that there is\n"
        "not. An allowance stands at the end of a line of its statement, or before `grammar`\n"
        "for the whole file.",
        _TOOLS + "plan = a b # lint: allow TCC702\n",
    ),
    "TCC715": Entry(
        "lints that were not decided",
        "A limit on states or time was reached, and these lints were left open. This is no\n"
        "finding; the exit code is 2 where there is nothing else. Raise `--max-states` or\n"
        "`--timeout`.",
    ),
    "TCC716": Entry(
        "tool that can never be called",
        "Plans have a call of this tool, and a gate refuses it in every session: what monitors\n"
        "ask before it, others forbid. `tcc prove G --reachable TOOL` asks for such a session;\n"
        '`tcc prove G "never TOOL"` is proved. Take out one of the statements, or the tool.',
        _HEAD + "tool find(; id: text max 9) { cost 1 }\ntool pay(; id: text max 9) { cost 1 }\n"
        "plan = (find | pay){1,3}\nrequire find before pay same id\n"
        "forbid find before pay same id\n",
    ),
    "TCC717": Entry(
        "errors of a counted tool",
        "`limit uses(..) <= n` counts calls of a tool that a server may answer with an error, and\n"
        "the tool does not say what that means: such a call is unknown, and counts. Where an\n"
        "error changes nothing, write `errors mean failed` in the braces of the tool; a failed\n"
        "call does not count, and may be made again.",
        _HEAD + 'tool a { cost 1 bind mcp "s" "a" }\nplan = a*\nlimit uses(a) <= 2\n',
    ),
    "TCC718": Entry(
        "field that nothing compares",
        "An answer behind the semicolon of `gives`, or a field at a place of its own (`at`), is\n"
        "there to be compared: in a `where`, a `same`, a `per`, a `sum` or a `let`. This one is\n"
        "read with each call, and nothing asks for it.",
    ),
    "TCC719": Entry(
        "condition that no values meet",
        "What the fields are declared to be leaves no values of which this condition is true: a\n"
        "value that is not listed, misspelt perhaps, a number outside its range, a text that is\n"
        "not of its pattern. A `require` with it is never met; a `forbid` or a limit counts\n"
        "with it only what is not known.",
        _HEAD + "tool a(k: 1..3) { cost 1 }\ntool b { cost 1 }\nplan = a* b\n"
        "limit depth <= 4\nrequire a where seen.k > 3 or a where seen.k = 1 before b\n",
    ),
    "TCC720": Entry(
        "attribute from any text",
        "`let x = tool.f` takes the first known value, for the rest of the session. Where f is a\n"
        "text without a pattern, a message of an error that the tool answers as plain text would\n"
        "do, too, and no later answer corrects it. Give the answer a pattern that such a message\n"
        "does not match.",
    ),
    "TCC725": Entry(
        "failed calls that count for a `forbid`",
        "With `errors mean failed`, a call that the server answers with an error is a failed one:\n"
        "it counts for no `require` and no limit. But the agent has read the error, so for a\n"
        "`forbid` it counts as done, its answer unknown. Where that is meant, allow it.",
        _HEAD + "tool a { cost 1 errors mean failed }\ntool b { cost 1 }\nplan = any*\n"
        "limit depth <= 4\nforbid a before b\n",
    ),
    "TCC726": Entry(
        "look-up of a part of the calls of its tools",
        "`let x(k) = SET` is of the latest call of SET's tools with that argument. A pattern,\n"
        "or what stands behind `-`, leaves no calls of these tools out: with `let x(k) = a(b=1)`\n"
        "a later a(b=2) is what x(k) is of. An older call is no news of the world. Name the\n"
        "tools, and ask for the rest in a `where`.",
        _HEAD + "tool a(b: 1 | 2; k: text) gives (; f: text) { cost 1 }\n"
        "tool c(; k: text, f: text) { cost 1 }\nplan = any*\nlimit depth <= 4\n"
        "let x(k) = a(b=1)\nrequire c where f = x(k).f\n",
    ),
}
CONFIGURATION: Mapping[str, Entry] = {
    "TCC721": Entry(
        "tcc.toml that cannot be read",
        "It is no regular file in UTF-8 of at most 64 KiB. `--no-config` reads none.",
    ),
    "TCC722": Entry(
        "tcc.toml that is no TOML",
        "The message says what was expected, at its line.",
    ),
    "TCC723": Entry(
        "unknown key in tcc.toml",
        "Nothing of the file is used while it holds a key that is not known: a misspelt one\n"
        "would be passed over in silence. docs/lint.md lists the keys.",
    ),
    "TCC724": Entry(
        "value in tcc.toml",
        "The value has another type than its key takes, or is out of range.",
    ),
}
