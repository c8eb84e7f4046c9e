"""TCC3xx: domains, amounts, counts; TCC4xx: set of plans; TCC5xx: examples, expectations."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

_HEAD = 'grammar g version "1"\n'

VALUES: Mapping[str, Entry] = {
    "TCC301": Entry(
        "value twice in a domain",
        "The values of a domain are distinct. Numbers are compared as numbers: `5` and `5.0`\n"
        'are one value. A quoted name is that name: `fast` and `"fast"` are one value.',
        _HEAD + "tool a(k: 5 | 10 | 5.0)\n",
    ),
    "TCC302": Entry(
        "not a range",
        "A range goes from an integer to an integer that is not less.",
        _HEAD + "tool a(k: 8..1)\n",
    ),
    "TCC303": Entry(
        "too many calls",
        "A tool has one call for each combination of its listed values, and a grammar\n"
        "has 65536 calls at most, over all its tools. Its ranges together list 262144 values at\n"
        "most. Use fewer or coarser values, or types.",
        _HEAD + "tool a(k: 1..1000000000)\n",
    ),
    "TCC304": Entry(
        "texts of the calls too long",
        "The canonical texts of all calls together take 16 MiB at most. Shorten names and\nvalues.",
    ),
    "TCC305": Entry(
        "name in arithmetic that is no number",
        "Arithmetic takes numbers, and fields whose values are all numbers.",
        _HEAD + "tool a(k: 5 | big) { cost 0.1 * k }\n",
    ),
    "TCC306": Entry(
        "amount that is not whole in its unit",
        "Costs and epsilons are whole nano-units (9 fractional digits), prices whole cents,\n"
        "latencies whole milliseconds. Nothing is rounded. If cents are too large, use a\n"
        "smaller unit: write all prices in tenths of a cent, say, and tell people so with the\n"
        'statement `currency "EUR/1000"`. It is a label: nothing is computed from it.',
        _HEAD + "tool a { price 0.5 }\n",
    ),
    "TCC307": Entry(
        "number outside its range",
        "Amounts have 64 bits: costs signed, prices, latencies and epsilons unsigned.\n"
        "Limits have at most 63 bits, intermediate results of arithmetic at most 4096.",
        _HEAD + "tool a { cost 10000000000 }\n",
    ),
    "TCC308": Entry(
        "negative amount",
        "A cost may be negative. A price, a latency, an epsilon and a count of calls may\nnot.",
        _HEAD + "tool a { price -1 }\n",
    ),
    "TCC309": Entry(
        "interval with its ends turned round",
        "In `cost LOW .. HIGH` the low end is not above the high end, for any call.",
        _HEAD + "tool a { cost 2 .. 1 }\n",
    ),
    "TCC310": Entry(
        "attribute given twice",
        "A tool has at most one `doc`, one `quotes`, one `bind`, and one of each amount\n"
        "without `when`. With `when` there may be many: the first one that applies is used.",
        _HEAD + "tool a { cost 1 cost 2 }\n",
    ),
    "TCC311": Entry(
        "not a repetition",
        "In `{m,n}` both are whole numbers, m is not above n, and neither is above 10000.",
        _HEAD + "tool a\nplan = a{3,2}\n",
    ),
    "TCC312": Entry(
        "not a count",
        "A number of calls or plans is a whole number, zero or more.",
        _HEAD + "tool a\nlimit depth <= 2.5\n",
    ),
    "TCC313": Entry(
        "binding that names no function",
        "A Python binding is `module:function`, both with dots where needed; an MCP\n"
        "binding names a server and a tool, neither empty.",
        _HEAD + 'tool a { bind python "math.sqrt" }\n',
    ),
    "TCC314": Entry(
        "too much to work out",
        "The amounts of a tool take calls times terms steps, and those of all tools together\n"
        "at most 2 million; the different patterns of a grammar contain at most 1 million calls\n"
        "together. Use fewer values, shorter arithmetic, or fewer different patterns over\n"
        "large domains.",
    ),
    "TCC315": Entry(
        "version or label that cannot be shown",
        "The text of a version takes at most 1024 bytes in UTF-8: it is in the artifact's\n"
        "manifest and in the first line of every ledger. It contains no control characters,\n"
        "none that turn the writing direction and no invisible ones: whoever reads it on a\n"
        "terminal or in a log has to see what it is. The label of a `currency` statement has 1\n"
        "to 128 characters of this kind.",
        'grammar g version "1.0\\nVALID"\ntool a\nplan = a\n',
    ),
    "TCC316": Entry(
        "word that looks like a type",
        "The field has one value, a word that is a type in other languages. The types are text,\n"
        "integer, number, flag, json, list, object, time, date, path and url. If the word itself\n"
        "is meant, as the one value, write it in quotes.",
        _HEAD + "tool pay(order: string)\n",
    ),
    "TCC317": Entry(
        "field without a valid type",
        'A text has `min n`, `max n` and `~ "pattern"`; integer and number have `LOW .. HIGH`;\n'
        "json has `max n`; a list has `min n`, `max n` and `distinct`. Lengths are whole\n"
        "numbers up to 1048576; without `max` a text has at most 65536 characters, and a json\n"
        "value as many bytes. The ends of a range are values of the type themselves: a whole\n"
        "number from -2^63 to 2^64 - 1, or one that its nearest double prints back. A time or\n"
        "date has `utc` or an offset: in a zone with a name, one local time can be two moments.",
        _HEAD + "tool pay(amount: number 500 .. 0)\n",
    ),
    "TCC318": Entry(
        "not a pattern of text",
        "The pattern behind `~` has to match the whole value. It can use characters, `.`,\n"
        "classes such as `[a-z]`, `[^x]`, `\\d`, `\\w` and `\\s`, groups, `|`, and repetitions\n"
        "`*`, `+`, `?` and `{m,n}`; written out it has at most 1,000 positions. There is no\n"
        "look-around and no back reference, so every value is checked in one pass.",
        _HEAD + 'tool pay(order: text ~ "(?=a)b")\n',
    ),
    "TCC319": Entry(
        "value that a call need not have",
        "A field with `?` may be left out, and then there is no number to compute with:\n"
        "arithmetic needs a field that every call has. An amount can depend on an optional\n"
        "field by `when`, which does not apply if the field is left out. What a tool\n"
        "gives always has a value.",
        _HEAD + "tool read(last?: 1 | 5) { cost 0.1 * last }\n",
    ),
    "TCC322": Entry(
        "atom that is no mechanism",
        "`atom` in a model names the mechanism with which it privatises what it looks at:\n"
        "`randomized_response(p, k)`, the truth of k choices with probability 0 < p < 1;\n"
        "`gaussian(sigma, sensitivity)` and `laplace(scale, sensitivity)`, all above 0;\n"
        "`discrete_gaussian(sigma, sensitivity)`, of a whole sensitivity;\n"
        "`subsampled_gaussian(rate, sigma, sensitivity)`, of a rate of at most 1; or points of a\n"
        "Renyi curve, `rdp(2, 0.1, 4, 0.25)`, orders above 1 and increasing. Numbers have at most\n"
        "18 digits on each side of the point. `times n` composes it with itself.",
        _HEAD + "tool a { cost 0 .. 1 model m { atom randomized_response(1.5, 2) } }\n",
    ),
    "TCC323": Entry(
        "pattern that takes too long to check",
        "A text is checked in one pass, while other calls of the session wait. The work is at\n"
        "most the positions of the pattern times the characters of a text, and may be 1048576 at\n"
        "most, some 0.1 s. Characters count up to `max` (65536 where it is not said), and no\n"
        "further than the longest text that the pattern matches, so one without `*`, `+` and\n"
        "`{m,}` always passes. Write a smaller `max`, or a pattern with fewer positions: a long\n"
        "repetition such as `[a-z]{900}` has 900.",
        _HEAD + 'tool pay(order: text ~ "[ab]*a[ab]{900}")\n',
    ),
    "TCC324": Entry(
        "not a quality",
        "`quality` of a model says which share of a range's width it is taken to gain before it\n"
        "has answered: above 0, at most 1, with at most 9 fractional digits. Without it, 0.5.",
        _HEAD + "tool a { cost 0 .. 1 model m { quality 1.5 } }\n",
    ),
}


# TCC4xx: the set of plans; TCC5xx: examples and expectations.

LANGUAGE: Mapping[str, Entry] = {
    "TCC401": Entry(
        "infinitely many plans",
        "A run and a count need finitely many plans. With every limit applied there is still\n"
        "a cycle of calls that can be repeated for ever and left towards a plan; the\n"
        "message shows its calls. `limit depth <= N` cuts every cycle, `limit count(tool) <=\n"
        "N` those with that tool, `limit price`, `latency` or `epsilon` those whose calls\n"
        "have one.\n\n"
        "A gate needs no limit: compile with `--for gate`. A grammar without `plan` and without\n"
        "`limit depth` is compiled so by default.",
        _HEAD + "tool a\ntool b\nplan = a* b\n",
    ),
    "TCC402": Entry(
        "no plan at all",
        "Every sequence of calls is ruled out by some statement. The message names a few\n"
        "statements that together leave no plan, each with its place: change one of them. If\n"
        "these cannot be found with little work, it names the statement at which the last plan\n"
        "was lost.",
        _HEAD + "tool a\nplan = a\nlimit depth <= 0\n",
    ),
    "TCC403": Entry(
        "too many states",
        "An automaton that the compiler builds has more states than `--max-states` allows. The\n"
        "message names the pass, and the statement behind the states if it is known. Limits of\n"
        "several kinds multiply the states, even a limit that never applies. Nothing is left\n"
        "out unasked: the notes name what `--relax auto` would leave to a run, and how many\n"
        "states are left then.",
    ),
    "TCC404": Entry(
        "out of time",
        "Compiling took longer than `--timeout` allows. The message names the pass, the notes\n"
        "the alternatives (see TCC403), as far as there was time to try them.",
    ),
    "TCC405": Entry(
        "a bound leaves 64 bits",
        "The cheapest completion, or the residual, of some state does not fit into 64 bits.\n"
        "Use smaller costs, a smaller beta, or a lower limit on depth.",
    ),
    "TCC406": Entry(
        "recursion that could not be decided",
        "A rule uses itself inside an operand of `&` or `-`, no limit bounds the depth of the\n"
        "recursion, and the search did not find out within its bounds whether the rule has\n"
        "finitely many plans. Recursion that is found to have no end is TCC401. Add\n"
        "`limit depth <= N`.",
        _HEAD + "tool a\ntool b\nrule r = (a r b | a b) - b\nplan = r\n",
    ),
    "TCC407": Entry(
        "count too large",
        "The number of plans takes more bits than `--count-bits` allows. `--round-counts BITS`\n"
        "and `--relax auto` round the counts of the race; see TCC411.",
    ),
    "TCC408": Entry(
        "an option out of range",
        "`--beta` is an exact decimal of at least 0 (such as 1 or 0.25), `--tilt` a whole\n"
        "number from 0 to 64, `--max-states` at least 1, `--round-counts` from 1 to 63.",
    ),
    "TCC409": Entry(
        "not a core",
        "The bytes to compile are not the canonical core of a grammar (docs/spec/core.md). A\n"
        "grammar file never causes this.",
    ),
    "TCC410": Entry(
        "an artifact that fails its own check",
        "Before an artifact is handed out, it is checked as a reader would check it. This\n"
        "one failed, which is a defect of the compiler: please report it with the grammar.",
    ),
    "TCC411": Entry(
        "CountFail: bounds in place of counts",
        "A warning, if `--relax auto` is given. The exact automaton exceeds `--max-states`,\n"
        "`--timeout` or `--count-bits`, or its state sets multiply, so the artifact has\n"
        "`counts: upper`. The message names the\n"
        "pass, the figure that it reached and the cause, and says what was given up:\n"
        "the statement that multiplied the states most is left to a run, which enforces it; or\n"
        "derivations are counted instead of plans; or race counts are rounded up. Searches\n"
        "over it are certified in surrogate mode. Without `--relax auto` this is an error.",
    ),
    "TCC412": Entry(
        "a statement that cannot be relaxed",
        "`--relax` takes `auto`, a kind (depth, price, latency, cost, epsilon, count, sum,\n"
        "require, forbid, owe), the canonical text of a statement, such as `limit count(search)\n"
        "<= 2`, or its number. It must name a statement that the automaton holds; without it\n"
        "there must still be finitely many plans; and a limit on cost can only be relaxed if no\n"
        "call has a negative cost, because a run adds up costs and could not handle a sum that\n"
        "falls below the limit again.",
    ),
    "TCC414": Entry(
        "no plan goes on after every answer",
        "The tool decides what a call with `gives` answers. A tool that is `strict` may be\n"
        "called only if a plan continues whatever it answers; every other call of it is cut.\n"
        "Here nothing is left. The message shows the nearest call with an answer that leads\n"
        "nowhere: say what follows that answer, or remove `strict`; then a gate only requires\n"
        "that some answer leads on.",
    ),
    "TCC415": Entry(
        "strict, and relaxed",
        "Only the exact automaton shows whether plans continue after every answer of a strict\n"
        "tool. If statements are left to a run, or derivations are counted, some states\n"
        "only seem to lead on. Leave out `--relax`, or remove `strict`.",
    ),
    "TCC416": Entry(
        "call with too many answers for a session",
        "A warning. While the answer of a call is not known, a session keeps every\n"
        "position that is possible: before the call, after each answer, and nowhere if an\n"
        "answer has no plan. It keeps at most 64, so a gate refuses a call that may lead to\n"
        "more (R301): this call can be planned, but never made through a gate. Answers with the\n"
        "same continuations lead to one position. List fewer values in `gives`, or let\n"
        "statements distinguish fewer of them.",
    ),
    "TCC417": Entry(
        "parallel tool that commutes with none",
        "A warning. Calls of parallel tools run at the same time if their order makes no\n"
        "difference: both orders lead to the same states of the automaton, and no statement\n"
        "orders one against the other. The order of this tool's calls and\n"
        "those of any parallel tool, itself included, does make a difference: its calls wait\n"
        "for others as if `parallel` were not there.",
    ),
}
EXAMPLES: Mapping[str, Entry] = {
    "TCC501": Entry(
        "accept line that does not hold",
        "`accept` says that at least one sequence of calls that matches its patterns is a\n"
        "plan. None is. Either the line or the grammar is wrong. The message says how far plans\n"
        "follow the line, and what could come where they leave it; `tcc test` and\n"
        "`tcc compile` name the statements that forbid it.",
        _HEAD + "tool a\ntool b\nplan = a\naccept b\n",
    ),
    "TCC502": Entry(
        "reject line that does not hold",
        "`reject` says that no sequence of calls that matches its patterns is a plan. One is;\n"
        "the message shows it, and notes name the statements about its calls, all of which\n"
        "let it through.",
        _HEAD + "tool a\nplan = a\nreject a\n",
    ),
    "TCC503": Entry(
        "expectation that does not hold",
        "`expect` compares the number of plans, the least cost of a plan or the greatest\n"
        "number of calls with a number. The message gives the true one.",
        _HEAD + "tool a\nplan = a?\nexpect plans = 3\n",
    ),
    "TCC504": Entry(
        "example or expectation that was not decided",
        "A warning. The artifact has bounds in place of counts (see TCC411), which do not\n"
        "decide whether this line holds: an upper bound on a number of plans says\n"
        "nothing about `=`. Compile without `--relax` and with larger limits to decide it.",
    ),
    "TCC505": Entry(
        "expectation about sessions that does not hold",
        "`expect always` names a statement that every session satisfies, `expect reachable`\n"
        "calls that some session has, `expect implies` a grammar that allows every session. A\n"
        "note shows a session that a gate has allowed, or the statements that exclude the calls.\n"
        "Either the expectation or the grammar is wrong.",
        _HEAD + "tool a\ntool b\nlimit depth <= 3\nexpect always before b require a\n",
    ),
    "TCC506": Entry(
        "expectation about sessions that was not decided",
        "A note; the exit code stays 0. The engine of `tcc prove` found neither a proof nor a\n"
        "session within ten seconds. The note says what stood in the way, often the statement\n"
        "that refused each session that was tried. `tcc prove --timeout` searches longer.",
    ),
    "TCC507": Entry(
        "allowed session that is refused",
        "The gate has to allow each call of a session in `G.allowed.jsonl`, and its end if the\n"
        'line has `"ends": true`. It refuses one; the message names the call and the\n'
        "statement. Either the session or the grammar is wrong.",
    ),
    "TCC508": Entry(
        "refused session that is allowed, or refused too early",
        "The gate has to allow every call but the last of a session in `G.refused.jsonl`, and\n"
        'to refuse the last one. With `"ends": true` the end of the session counts as the last\n'
        "call. Either the last call is allowed, or an earlier one is refused.",
    ),
    "TCC509": Entry(
        "recorded sessions that cannot be read",
        "`G.allowed.jsonl` or `G.refused.jsonl` beside the grammar is no file of sessions, as\n"
        "`tcc replay` reads them: one session per line.",
    ),
}
