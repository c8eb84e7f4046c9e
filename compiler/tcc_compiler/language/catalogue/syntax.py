"""TCC1xx: bytes, characters, tokens, statements; TCC2xx: names, their definitions, and files."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

SYNTAX: Mapping[str, Entry] = {
    "TCC101": Entry(
        "unexpected text",
        "The text at this place cannot continue the statement that it is in. The message\n"
        "lists what could. A statement ends where the next keyword begins, so a missing part is\n"
        "reported just before that keyword.",
        'grammar g version "1"\ntool a\nplan = a |\nlimit depth <= 3\n',
    ),
    "TCC102": Entry(
        "character without a meaning",
        "The language has no use for this character outside strings and comments. Characters\n"
        "that look like others (a non-breaking space, curly quotes, a long dash) often come\n"
        "from a text that was copied out of a page.",
        'grammar g version "1"\ntool a;\nplan = a\n',
    ),
    "TCC103": Entry(
        "string not closed",
        "A string ends with a double quote on the line on which it begins, and contains no\n"
        'control characters. Write a newline as \\n and a quote as \\".',
        'grammar g version "1\ntool a\n',
    ),
    "TCC104": Entry(
        "string with half of a character",
        'In strings `\\"`, `\\\\` and the other escapes of JSON mean what they mean in JSON, and\n'
        "any other backslash stands for itself. The escapes of a surrogate pair come as a pair.",
        'grammar g version "1"\ntool a { doc "\\ud800" }\n',
    ),
    "TCC105": Entry(
        "number with too many digits",
        "A number has at most 1000 digits.",
    ),
    "TCC106": Entry(
        "nested too deeply",
        "Parentheses, stacked operators and stacked signs may be nested 250 levels deep. Give\n"
        "the inner part a name of its own with a `let` or a `rule`.",
    ),
    "TCC107": Entry(
        "source too large",
        "A grammar, together with all files that it uses, has at most 8 MiB and 256 files, each\n"
        "file at most 1048576 tokens.",
    ),
    "TCC108": Entry(
        "not a text in UTF-8",
        "A grammar is text in UTF-8 without NUL characters. The message names the first byte\n"
        "that is not.",
    ),
    "TCC109": Entry(
        "byte order mark",
        "The file begins with a byte order mark. UTF-8 needs none; save the file without it.\n"
        "A file in UTF-16 has to be saved as UTF-8.",
    ),
    "TCC110": Entry(
        "file cannot be read",
        "The file does not exist, is not a regular file, or may not be read. The message gives\n"
        "the operating system's reason.",
    ),
    "TCC111": Entry(
        "name that means something else in statements",
        "A few words have a meaning of their own in statements, such as `any`, `this`, `it`,\n"
        "`session` and `now`. A tool or a `let` with such a name is written in backticks, where\n"
        "it is declared and where it is used.",
        'grammar g version "1"\ntool any\nlimit depth <= 3\n',
    ),
    "TCC112": Entry(
        "more errors than are shown",
        "The first 200 errors are shown. Fix some of them, and compile again.",
    ),
    "TCC113": Entry(
        "name that cannot be one",
        "A name has 1 to 128 characters, none of them a control or hidden character, because\n"
        "names are shown on terminals and in logs. A name that is no identifier is written in\n"
        "backticks.",
        'grammar g version "1"\ntool `a\u200bb`\n',
    ),
    "TCC114": Entry(
        "bracket without its partner",
        "A '(' or a '{' is not closed in its statement, or a ')' or a '}' closes nothing. The\n"
        "message points at the bracket; if it is not closed, a note says what was found instead\n"
        "of the closing bracket.",
        'grammar g version "1"\ntool a { cost 1\ntool b\nplan = a b\n',
    ),
}


# TCC2xx: names, their definitions, and the files that define them.

_HEAD = 'grammar g version "1"\n'
_TOOLS = _HEAD + "tool search(k: 5 | 10)\ntool rerank\n"

NAMES: Mapping[str, Entry] = {
    "TCC201": Entry(
        "defined twice",
        "A tool, a rule, a field, a `let`, a model or a goal has one definition. The note shows\n"
        "the first. Tools of used files count, too.",
        _HEAD + "tool a { cost 1 }\ntool a { cost 2 }\n",
    ),
    "TCC202": Entry(
        "name without a definition",
        "No tool, rule, `let`, field or attribute has this name. Names are case-sensitive.",
        _TOOLS + "plan = search rerenk\n",
    ),
    "TCC203": Entry(
        "pattern that names no tool",
        "In plans, only tools take arguments in parentheses: a pattern stands for calls of one\n"
        "tool. A `let` stands in a plan only if it is a plain set of calls.",
        _TOOLS + "rule find = search search\nplan = find(k=5)\n",
    ),
    "TCC204": Entry(
        "unknown field",
        "The tool has no field of this name, or only some tools of a set have it.",
        _TOOLS + "plan = search(n=5)\n",
    ),
    "TCC205": Entry(
        "value outside the domain",
        'A listed field has only the values of its domain. `abc` and `"abc"` are the\n'
        'same value, and so are `5` and `5.0`; `5` and `"5"` are not. A time, a date, a path,\n'
        'a URL or a zone is compared with a text that can be read as one: "2026-01-31",\n'
        '"Europe/Berlin".',
        _TOOLS + "plan = search(k=7)\n",
    ),
    "TCC206": Entry(
        "a rule and a tool share a name",
        "In an expression each name has to mean one thing. Rename the rule.",
        _TOOLS + "rule rerank = search\n",
    ),
    "TCC207": Entry(
        "left recursion",
        "A rule may be recursive, but only after a call. This rule is reached from itself\n"
        "before any call is made (operands that can be empty are skipped, and both sides\n"
        "of `&` and `-` count). The message names the cycle. Most often a repetition is\n"
        "what is meant: `rule r = r a | a` is `rule r = a+`.",
        _TOOLS + "rule r = r search | search\nplan = r\n",
    ),
    "TCC209": Entry(
        "state that no signature names",
        "`start` and `goal` name states of signatures. No tool takes or gives this one, so\n"
        "most likely it is misspelled.",
        _HEAD + "tool a : text -> answer\nstart txt\ngoal answer\n",
    ),
    "TCC210": Entry(
        "start without goal, or goal without start",
        "Signatures are checked from a start state to a goal state, so a grammar needs both\n"
        "statements.",
        _HEAD + "tool a : text -> answer\nstart text\n",
    ),
    "TCC211": Entry(
        "given twice in a pattern",
        "A pattern names each field once, and each of its values once.",
        _TOOLS + "plan = search(k=5|5)\n",
    ),
    "TCC212": Entry(
        "statement that may stand once",
        "A grammar has at most one `grammar`, one `plan`, one `start` and one `goal` statement.\n"
        "Several goals are written in one statement: `goal text | number`.",
        _TOOLS + "plan = search\nplan = rerank\n",
    ),
    "TCC213": Entry(
        "grammar statement missing or not first",
        'A grammar file begins with `grammar NAME version "V"`.',
        "tool a\nplan = a\n",
    ),
    "TCC214": Entry(
        "no tool",
        "A plan is a sequence of calls of tools, so a grammar has at least one tool, in its\n"
        "own file or in one that it uses.",
        _HEAD,
    ),
    "TCC215": Entry(
        "signature without start and goal",
        "A signature `TAKES -> GIVES` says which state a call takes and which it leaves. It is\n"
        "enforced from the `start` state to a `goal` state; without these two statements it\n"
        "would enforce nothing, and any call could come first.",
        _HEAD + "tool read_secret : user -> user\nplan = read_secret\n",
    ),
    "TCC216": Entry(
        "open field where calls are told apart",
        "A field with a type is open: its value does not distinguish calls, so no plan names\n"
        "it, and no cost depends on it. List the values that plans depend on. A statement can\n"
        "restrict open values: `before pay(order = ..) require ..`.",
        _HEAD + "tool pay(order: text)\nplan = pay(order=x)\n",
    ),
    "TCC217": Entry(
        "strict tool that answers nothing",
        "`strict` cuts a grammar down to plans that continue whatever a tool answers. It needs\n"
        "`gives`, which lists the possible answers.",
        _HEAD + "tool check { strict }\n",
    ),
    "TCC221": Entry(
        "used file cannot be read",
        "The path is relative to the file with the `use` statement. It has to name a regular,\n"
        "readable file.",
        _HEAD + 'use "no_such_file.tcg"\ntool a\n',
    ),
    "TCC222": Entry(
        "used file outside the folder",
        "With symbolic links resolved, a used file is in the folder of the grammar or below\n"
        "it, so that a grammar cannot read arbitrary files. A grammar that is not in a file\n"
        "cannot use others.",
        _HEAD + 'use "/etc/hosts"\ntool a\n',
    ),
    "TCC223": Entry(
        "files use each other in a circle",
        "The message names the circle. Move what both files need into a third file.",
    ),
    "TCC224": Entry(
        "statement that a used file may not have",
        "A used file provides its tools and shapes: it has `tool`, `shape` and `use` statements\n"
        "and no others.",
    ),
    "TCC225": Entry(
        "part of a statement that does not fit",
        "The form does not belong at this place, or the values do not compare. The message says\n"
        "what belongs there. Numbers are ordered with numbers and times with times; values of\n"
        "different types are not compared. A pattern applies to a text, `in` to a list. Only\n"
        "numbers are added up. The answers of the call that is being decided do not exist yet.",
        _HEAD + "tool a(k: text)\ntool b\nlimit depth <= 3\nbefore b require last(a).k < 3\n",
    ),
    "TCC227": Entry(
        "duration that is not whole",
        "A duration is a whole number of milliseconds.",
        _HEAD + "tool a\ntool b\nlimit depth <= 3\nbefore b require a within 0.0005 s\n",
    ),
    "TCC228": Entry(
        "what does not pass a gate",
        "`pass resources, prompts, input` lets these parts of MCP through `tcc gate` unread.\n"
        "Nothing else can pass: a gate decides calls, and does not forward logging or\n"
        "completions.",
        'grammar g version "1"\ntool a\npass resources, logging\n',
    ),
}
