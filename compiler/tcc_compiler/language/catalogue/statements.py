"""TCC229 to TCC242 and TCC49x: common mistakes in statements of policies."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

_HEAD = """\
grammar g version "1"
tool find(order: text) gives (status: open | sent, items: list of text)
tool approve(order: text, amount: number) gives (answer: yes | no)
tool refund(order: text, amount: number 0 .. 500, to: list of text)
"""

STATEMENTS: Mapping[str, Entry] = {
    "TCC229": Entry(
        "statement inside a line",
        "Each statement begins a new line. So `plan = a start b` is an error, and not a plan\n"
        "and a `start` statement. Write a tool that has the name of a statement in backticks.",
        _HEAD + "limit depth <= 9 forbid refund\n",
    ),
    "TCC230": Entry(
        "limit without its scope",
        "A limit with `per` or `within` says where it counts: end it with `in session` or\n"
        "with `across sessions`. Without both words it counts the calls of one session.",
        _HEAD + "limit count(refund) per order <= 3\n",
    ),
    "TCC231": Entry(
        "a field compared with itself",
        "In a filter a bare name is a field of the earlier call, on both sides. `same order`\n"
        "compares it with the field of the call that is being decided; so does `order =\n"
        "this.order`.",
        _HEAD + "before refund require find(order = order)\n",
    ),
    "TCC232": Entry(
        "`not` before a set of calls",
        "`not` negates a condition. `no find(same order)` is true if no such call was made.",
        _HEAD + "before refund require not find(same order)\n",
    ),
    "TCC233": Entry(
        "pattern without special characters",
        'A pattern matches the whole text, so `~ "refund"` matches only this one word. Write\n'
        '`= "refund"` if you mean that, and `~ ".*refund.*"` for texts that contain it. In\n'
        'the type of a field write `text "refund"`.',
        _HEAD + 'forbid refund(order ~ "test")\n',
    ),
    "TCC234": Entry(
        "word with two meanings",
        "A word may be a field, a `let`, a tool or a listed value. No order decides between\n"
        "them, so a later declaration never changes a statement silently. Write `this.order`\n"
        'or `it.order` for the field, `"order"` for the value, or give the `let` another\n'
        "name.",
        _HEAD + "let order = 3\nbefore refund require order = 4\n",
    ),
    "TCC235": Entry(
        "count of calls compared with 0",
        "Write `no approve` for `count(approve) = 0`, and `approve` for `count(approve) > 0`.",
        _HEAD + "before refund require count(approve) = 0\n",
    ),
    "TCC236": Entry(
        "`last` as a condition",
        "`last(approve)` is a call and no condition. Compare a field of it, as in\n"
        "`last(approve).answer = yes`. If any such call is enough, write `approve`.",
        _HEAD + "before refund require last(approve)\n",
    ),
    "TCC237": Entry(
        "arithmetic beside `|`",
        "`|` binds tighter than `+`, `-` and `*`. Because many readers expect the opposite,\n"
        "an operand with `|` needs brackets: `any - (find | refund)` or `(any - find) |\n"
        "refund`.",
        _HEAD + "before any - find | refund require approve\n",
    ),
    "TCC238": Entry(
        "comparisons that chain",
        "A comparison has two sides. Write `amount in 1 .. 5`, or `1 < amount and amount <\n5`.",
        _HEAD + "before refund require 1 <= amount <= 5\n",
    ),
    "TCC239": Entry(
        "`every x in L`",
        "`every` takes a filter, in which `it` is the element: `every to(it in find.items)`.",
        _HEAD + "before refund require every to in find.items\n",
    ),
    "TCC240": Entry(
        "window behind a bound",
        "A window belongs to the calls that are counted: `limit count(refund within 30 d) <=\n"
        "3 in session`.",
        _HEAD + "limit count(refund) <= 3 within 30 d\n",
    ),
    "TCC241": Entry(
        "filter inside a union",
        "A filter in one part of a union is easy to read as a filter of the whole. Write\n"
        '`(find | refund)(order = "x")` to filter all of it, or one statement for each part. The\n'
        "set that a statement restricts has no filter beside `-` either.",
        _HEAD + 'forbid find(order = "x") | refund\n',
    ),
    "TCC242": Entry(
        "an order of calls as people guess it",
        "A statement names first the calls that it restricts. `require find before refund` is\n"
        "written `before refund require find`, and `forbid refund before approve` is written\n"
        "`before approve require no refund`.",
        _HEAD + "require find before refund\n",
    ),
}
