"""TCC7xx: lints, for text without effect or with a probably different intention; ``tcc.toml``."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

_HEAD = 'grammar g version "1"\n'
_TOOLS = _HEAD + "tool a { cost 1 }\ntool b { cost 2 }\n"
_DESK = (
    _HEAD
    + "tool find(order: text) gives (status: open | sent, owner: text)\n"
    + "tool approve(order: text, amount: number) gives (answer: yes | no, by: text)\n"
    + "tool refund(order: text, amount: number 0 .. 500)\n"
    + "limit depth <= 40\n"
)
_TESTS = (
    _HEAD
    + "tool edit(file: text)\n"
    + "tool run_tests gives (result: pass | fail)\n"
    + "tool commit\n"
    + "limit depth <= 40\n"
)
_MAIL = (
    _HEAD
    + "tool mail(to: text, cc: text, body: text)\n"
    + "tool share(people: list of text, note?: text)\n"
    + "tool run(query: text)\n"
    + "tool read(path: text)\n"
    + "limit depth <= 40\n"
)

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
    "TCC704": Entry(
        "statement that others imply",
        "Without this statement a gate allows the same sessions: the exact engine has proved it\n"
        "from the statements that the message names. `tcc lint --fix` removes it. If two\n"
        "statements imply each other, only the later one is reported. A statement may be meant\n"
        "as a second lock on the same door; then say so: `# lint: allow TCC704` and the reason.",
        _TOOLS + "limit depth <= 4\nlimit count(a) <= 2\nlimit count(a) <= 3\n",
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
        "grammar without `plan` is for a gate, and needs none. If one with `plan` only guards\n"
        "sessions, allow the lint.",
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
        "A limit on states or time was reached, and these lints remained open. This is a note\n"
        "and no finding, so the exit code stays 0. Raise `--max-states` or `--timeout`.",
    ),
    "TCC717": Entry(
        "errors of a counted tool",
        "The limit counts calls of a tool that a server may answer with an error, and the tool\n"
        "does not say what an error means: such a call is unknown, and counts. If an error\n"
        "changes nothing, write `errors mean failed` in the braces of the tool. A failed call\n"
        "does not count, and may be made again.",
        _HEAD + 'tool a { cost 1 bind mcp "s" "a" }\nplan = a*\nlimit count(a) <= 2\n',
    ),
    "TCC730": Entry(
        "answer that no condition reads",
        "The statement asks for a call that answers yes or no, and no condition reads the answer:\n"
        "a no is enough. Write the answer into the filter, as in `approve(same order, answer =\n"
        "yes)`.",
        _DESK + "before refund require unused approve(same (order, amount))\n",
    ),
    "TCC731": Entry(
        "approval for ever",
        "One yes allows any number of later calls, at any time. With `unused` an approval serves\n"
        "one call. With `within 1 h` it is recent. A test result is renewed by `since`, as in\n"
        "`last(run_tests since edit).result = pass`. A limit that allows one call for each key\n"
        "answers the lint, too.",
        _DESK + "before refund require approve(same (order, amount), answer = yes)\n",
    ),
    "TCC732": Entry(
        "answer of any earlier call",
        "`find(same order, status = open)` is true if any earlier `find` answered so, even if the\n"
        "last one answered otherwise. `last(find(same order)).status = open` compares the last\n"
        "answer.",
        _DESK + "before refund require find(same order, status = open)\n",
    ),
    "TCC733": Entry(
        "later failure that is ignored",
        "`run_tests(result = pass) since edit` is true if one of the runs passed, even if a later\n"
        "one failed. `last(run_tests since edit).result = pass` compares the last run.",
        _TESTS + "before commit require run_tests(result = pass) since edit\n",
    ),
    "TCC734": Entry(
        "earlier call about something else",
        "Both tools have an argument of one name and type, and no condition compares them, so an\n"
        "earlier call about another order counts, too. `find(same order)` asks for the order of\n"
        "the call. If any earlier call is meant, allow the lint.",
        _DESK + "before refund require find\n",
    ),
    "TCC735": Entry(
        "calls are counted, and not people",
        "`count(approve(..)) >= 2` is true if one person approved twice. `count(distinct(C.by))`\n"
        "counts the different values of a field.",
        _DESK
        + "before refund\n"
        + "  require count(approve(same (order, amount), answer = yes) within 1 d) >= 2\n",
    ),
    "TCC736": Entry(
        "`every` over a list that may be empty",
        "`every L(..)` is true of an empty list, so such a call is allowed. If an empty list has\n"
        "no use, declare the argument as `list min 1 of ..`. If it is harmless, allow the lint.",
        _MAIL + 'before share require every people(it ~ "[a-z]+@example[.]com")\n',
    ),
    "TCC737": Entry(
        "`since` without the key",
        "In `C(same order) since S` a call of S about another order ends the wait, too. Write the\n"
        "same key behind `since`. If S is the restricted set, write `unused C(same order)`.",
        _DESK
        + "before refund\n"
        + "  require last(approve(same (order, amount)) since refund).answer = yes\n",
    ),
    "TCC738": Entry(
        "one of several such fields",
        "The condition is about one field, such as `to`, and no statement is about another field\n"
        "with the same effect, such as `cc`. Write a condition for each of them. The lint knows\n"
        "such fields by their names.",
        _MAIL + 'forbid mail(to = "all@example.com")\n',
    ),
    "TCC739": Entry(
        "comparison with an optional field",
        "A comparison with a field that a call leaves out is unsure, and an unsure condition\n"
        "refuses the call. Write `f = null or ..` to allow calls without the field, or `f != null\n"
        "and ..` to show that they are refused. In the filter of a `forbid` write `f != null, ..`.",
        _MAIL + 'forbid share(note ~ ".*secret.*")\n',
    ),
    "TCC740": Entry(
        "pattern for a path or URL",
        "A pattern compares characters. `/srv/../etc/passwd` and `//etc/passwd` are the file\n"
        "`/etc/passwd`, and `https://a.example.com@b.com/` is on `b.com`. Declare the field as\n"
        "`path` or `url`, and compare it by `under`: these types are compared in normal form.",
        _MAIL + 'forbid read(path ~ "/etc/.*")\n',
    ),
    "TCC741": Entry(
        "obligation of a day or more",
        "An obligation ends with its session, so a deadline of days is seldom reached. Write a\n"
        "shorter window, or none: then the session cannot finish before the call is made.",
        _DESK + "after find owe refund(same order) within 2 d\n",
    ),
    "TCC742": Entry(
        "approval that leaves out an argument",
        "The approval and the call both have this argument, and no condition compares them: what\n"
        "was approved for 10 serves a call with 500. Write `same (order, amount)`.",
        _DESK + "before refund require unused approve(same order, answer = yes)\n",
    ),
    "TCC743": Entry(
        "deny pattern for whole texts only",
        'A pattern matches the whole text. `forbid run(query ~ "drop [a-z]+")` refuses the text\n'
        "`drop users`, and not `begin; drop users`. Write `.*` at both ends.",
        _MAIL + 'forbid run(query ~ "(?i)drop [a-z]+")\n',
    ),
    "TCC744": Entry(
        "allow pattern with `.`",
        "`.` matches every character, line feeds too, so a second line of the text may hold\n"
        'anything. Write `[^\\n]`, or better the characters that you allow: `"[a-z ]*"`.',
        _MAIL + 'before run require query ~ "select .*"\n',
    ),
    "TCC745": Entry(
        "tool that no statement names",
        "A note, and no finding: the policy has statements, and none of them names this tool. If\n"
        "`plan` names the tool, there is no note.",
        _DESK
        + "tool reply(message: text)\nbefore refund require last(find(same order)).status = open\n"
        "forbid approve(amount > 500)\n",
    ),
    "TCC746": Entry(
        "statements that exclude each other",
        "No session can call these tools, whatever it does: each call needs another one first\n"
        "that cannot be made, or two conditions that are never both true. The message names the\n"
        "group of statements. The lint looks at calls and constants, so it does not find every\n"
        "such group.",
        _DESK + "before find require refund(same order)\nbefore refund require find(same order)\n",
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
