"""TCC3xx: domains, amounts, counts, and what has to be whole, ordered or small enough."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

_HEAD = 'grammar g version "1"\n'

VALUES: Mapping[str, Entry] = {
    "TCC301": Entry(
        "value twice in a domain",
        "The values of a domain differ. Numbers are compared as numbers: `5` and `5.0` are\n"
        'one value. A name in quotes is that name: `fast` and `"fast"` are one value.',
        _HEAD + "tool a(k: 5 | 10 | 5.0)\n",
    ),
    "TCC302": Entry(
        "range that is none",
        "A range goes from an integer up to an integer that is not less.",
        _HEAD + "tool a(k: 8..1)\n",
    ),
    "TCC303": Entry(
        "too many calls",
        "A tool has one call for each combination of its parameters' values, and a grammar\n"
        "has 65536 calls at most, over all its tools. Use fewer or coarser values.",
        _HEAD + "tool a(k: 1..1000000000)\n",
    ),
    "TCC304": Entry(
        "texts of the calls too long",
        "The canonical texts of all calls together take 16 MiB at most. Shorten names and\nvalues.",
    ),
    "TCC305": Entry(
        "name in arithmetic that is no number",
        "Arithmetic takes numbers and parameters all of whose values are numbers.",
        _HEAD + "tool a(k: 5 | big) { cost 0.1 * k }\n",
    ),
    "TCC306": Entry(
        "amount that is not whole in its unit",
        "Costs and epsilons are whole nano-units (9 fractional digits), prices whole cents,\n"
        "latencies whole milliseconds. Nothing is rounded. Where cents are too large, let one\n"
        "unit be less: write all prices in tenths of a cent, say, and tell people so by the\n"
        'statement `currency "EUR/1000"`. It is a label: nothing is computed from it.',
        _HEAD + "tool a { price 0.5 }\n",
    ),
    "TCC307": Entry(
        "number outside its range",
        "Amounts are kept in 64 bits: costs signed, prices, latencies and epsilons unsigned.\n"
        "Limits keep to 63 bits. Arithmetic on the way keeps to 4096 bits.",
        _HEAD + "tool a { cost 10000000000 }\n",
    ),
    "TCC308": Entry(
        "negative amount",
        "A cost may be negative. A price, a latency, an epsilon and what counts calls may\nnot.",
        _HEAD + "tool a { price -1 }\n",
    ),
    "TCC309": Entry(
        "interval with its ends turned round",
        "In `cost LOW .. HIGH` the low end is not above the high end, for every call.",
        _HEAD + "tool a { cost 2 .. 1 }\n",
    ),
    "TCC310": Entry(
        "attribute given twice",
        "A tool has at most one `doc`, one `quotes`, one `bind`, and one of each amount\n"
        "without `when`. With `when` there may be many: the first that holds is taken.",
        _HEAD + "tool a { cost 1 cost 2 }\n",
    ),
    "TCC311": Entry(
        "repetition that is none",
        "In `{m,n}` both are whole numbers, m is not above n, and neither is above 10000.",
        _HEAD + "tool a\nplan = a{3,2}\n",
    ),
    "TCC312": Entry(
        "count that is none",
        "What counts calls or plans is a whole number, zero or more.",
        _HEAD + "tool a\nlimit depth <= 2.5\n",
    ),
    "TCC313": Entry(
        "binding that names no function",
        "A Python binding reads `module:function`, both with dots where needed; an MCP\n"
        "binding names a server and a tool, neither empty.",
        _HEAD + 'tool a { bind python "math.sqrt" }\n',
    ),
    "TCC314": Entry(
        "too much to work out",
        "The amounts of a tool take calls times terms steps, those of all tools together\n"
        "2 million at most; the different patterns of a grammar hold 1 million calls\n"
        "together. Use fewer values, shorter arithmetic, or fewer different patterns over\n"
        "large domains.",
    ),
    "TCC315": Entry(
        "version or label that cannot be shown",
        "The text of a version takes at most 1024 bytes in UTF-8: it stands in the artifact's\n"
        "manifest and in the first line of every ledger. It holds no control characters, none\n"
        "that turn the writing direction and none that are not seen: whoever reads it on a\n"
        "terminal or in a log has to see what it is. The label of a `currency` statement has\n"
        "1 to 128 characters of this kind.",
        'grammar g version "1.0\\nVALID"\ntool a\nplan = a\n',
    ),
    "TCC316": Entry(
        "type where values are listed",
        "Before the semicolon a parameter lists its values, so `order: text` is a parameter\n"
        "whose only value is the word `text`. That is hardly ever meant. A parameter that takes\n"
        "any value of a type is open, and stands behind a semicolon: `tool pay(; order: text)`.\n"
        "The types are text, integer, number, flag and json. The word itself, as the one value,\n"
        'stands in quotes: `order: "text"`.',
        _HEAD + "tool pay(order: text)\n",
    ),
    "TCC317": Entry(
        "open parameter whose type is none",
        'Behind the semicolon stand `name: text` with `min n`, `max n` and `~ "pattern"`,\n'
        "`name: integer` and `name: number` with `LOW .. HIGH`, `name: flag`, and `name: json`\n"
        "with `max n`. Lengths are whole numbers up to 1048576; without `max` a text has at most\n"
        "65536 characters, and a json value as many bytes. The ends of a range are values of the\n"
        "type themselves, so a double has to hold them. Parameters that list their values stand\n"
        "before the semicolon.",
        _HEAD + "tool pay(; amount: number 500 .. 0)\n",
    ),
    "TCC318": Entry(
        "pattern of text that is none",
        "The pattern behind `~` has to match the whole value. It knows characters, `.`, classes\n"
        "such as `[a-z]`, `[^x]`, `\\d`, `\\w` and `\\s`, groups, `|`, and repetitions `*`, `+`,\n"
        "`?` and `{m,n}`; written out it has at most 1,000 positions. There is no look-around and\n"
        "no back reference, so every value is checked in one pass.",
        _HEAD + 'tool pay(; order: text ~ "(?=a)b")\n',
    ),
    "TCC319": Entry(
        "value that a call need not have",
        "A parameter with `?` may be left out, and then there is nothing to reckon with, to\n"
        "compare or to count by: arithmetic, `same`, `per` and a sum over open values want a\n"
        "parameter that every call has. An amount can depend on it by `when`, which does not hold\n"
        "where it is left out. What a tool gives always has a value.",
        _HEAD + "tool read(last?: 1 | 5) { cost 0.1 * last }\n",
    ),
    "TCC320": Entry(
        "statement that stands for too many",
        "`same` and `per` over listed parameters stand for one statement for each value: 4096\n"
        "at most for one statement, 65536 for a grammar, where one with several pairs counts as\n"
        "many times. Over open parameters they stand for themselves, and a gate holds them.",
        _HEAD + "tool a(k: 1..5000)\nlimit uses(a) per k <= 1\n",
    ),
    "TCC321": Entry(
        "sum that cannot be kept",
        "`limit sum(tool.parameter)` adds up numbers from 0 up, so that a sum never comes back\n"
        "below its limit: a listed parameter has only such values, with at most 9 fractional\n"
        "digits; an open one is `number 0 .. HIGH` or `integer 0 .. HIGH`.",
        _HEAD + "tool pay(; amount: number)\nlimit sum(pay.amount) <= 500\n",
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
        _HEAD + 'tool pay(; order: text ~ "[ab]*a[ab]{900}")\n',
    ),
    "TCC324": Entry(
        "quality that is none",
        "`quality` of a model says which share of a range's width it is taken to gain before it\n"
        "has answered: above 0, at most 1, with at most 9 fractional digits. Without it, 0.5.",
        _HEAD + "tool a { cost 0 .. 1 model m { quality 1.5 } }\n",
    ),
}
