"""TCC1xx: bytes, characters, tokens, statements; TCC2xx: names, their definitions, and files."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

SYNTAX: Mapping[str, Entry] = {
    "TCC101": Entry(
        "unexpected text",
        "The text at this place cannot continue the statement that it stands in. The message\n"
        "lists what could. A statement ends where the next keyword begins, so a part that is\n"
        "missing shows up just before that keyword.",
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
        "A string ends with a double quote on the line on which it begins, and holds no\n"
        'control characters. Write a newline as \\n and a quote as \\".',
        'grammar g version "1\ntool a\n',
    ),
    "TCC104": Entry(
        "string that JSON would not read",
        'Strings are JSON strings: after a backslash stands one of " \\ / b f n r t, or u and\n'
        "four hexadecimal digits, and the halves of a surrogate pair come together.",
        'grammar g version "1"\ntool a { doc "50\\% of it" }\n',
    ),
    "TCC105": Entry(
        "number with too many digits",
        "A number has at most 1000 digits.",
    ),
    "TCC106": Entry(
        "nested too deeply",
        "Parentheses, stacked operators and stacked signs may be nested 200 levels deep. Give\n"
        "the inner part a name of its own with a `rule` statement.",
    ),
    "TCC107": Entry(
        "source too large",
        "A grammar with all the files it uses has at most 8 MiB, each file at most 131072\n"
        "tokens, and there are at most 256 files.",
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
        "The file is not there, is not a regular file, or may not be read. The message gives\n"
        "the operating system's reason.",
    ),
    "TCC111": Entry(
        "reserved word as a name",
        "The words that begin statements, and `version any when before after with`, are\n"
        "keywords everywhere. That is what makes the end of a statement plain without\n"
        "punctuation. The name of a tool or of a parameter, and a value, can be such a word in\n"
        "double quotes; a rule, a state or a model cannot.",
        'grammar g version "1"\ntool goal\n',
    ),
    "TCC112": Entry(
        "more errors than are shown",
        "The first 200 errors are shown. Mend some of them, and look again.",
    ),
    "TCC113": Entry(
        "name that cannot be one",
        "The name of a tool or of a parameter has 1 to 128 characters, none of them a control\n"
        "or hidden character: names are shown on terminals and in logs. A name that is no\n"
        "identifier, or is a reserved word, stands in double quotes.",
        'grammar g version "1"\ntool ""\n',
    ),
    "TCC114": Entry(
        "bracket without its partner",
        "A '(' or a '{' is not closed in its statement, or a ')' or a '}' closes nothing. The\n"
        "message points at the bracket; where it is not closed, a note says what was found in\n"
        "place of the other one.",
        'grammar g version "1"\ntool a { cost 1\ntool b\nplan = a b\n',
    ),
}


# TCC2xx: names, their definitions, and the files that bring them in.

_HEAD = 'grammar g version "1"\n'
_TOOLS = _HEAD + "tool search(k: 5 | 10)\ntool rerank\n"

NAMES: Mapping[str, Entry] = {
    "TCC201": Entry(
        "defined twice",
        "A tool, a rule, a parameter, a model or a goal has one definition. The note shows\n"
        "the first. Tools that come in from another file count.",
        _HEAD + "tool a { cost 1 }\ntool a { cost 2 }\n",
    ),
    "TCC202": Entry(
        "name without a definition",
        "The expression names something that is neither a tool nor a rule. Names are\n"
        "case-sensitive.",
        _TOOLS + "plan = search rerenk\n",
    ),
    "TCC203": Entry(
        "pattern that names no tool",
        "A pattern stands for calls of one tool: limits, requires, forbids and examples take\n"
        "patterns, and arguments in parentheses go with tools alone. A rule can stand for a set\n"
        "of calls in a statement, if each of its plans is a single call.",
        _TOOLS + "rule find = search search\nrequire find before rerank\n",
    ),
    "TCC204": Entry(
        "unknown parameter",
        "The tool has no parameter of this name.",
        _TOOLS + "plan = search(n=5)\n",
    ),
    "TCC205": Entry(
        "value outside the domain",
        'A parameter takes the values of its domain and no others. `abc` and `"abc"` are the\n'
        'same value, and so are `5` and `5.0`; `5` and `"5"` are not.',
        _TOOLS + "plan = search(k=7)\n",
    ),
    "TCC206": Entry(
        "a rule and a tool share a name",
        "In an expression a name has to mean one thing. Rename the rule.",
        _TOOLS + "rule rerank = search\n",
    ),
    "TCC207": Entry(
        "left recursion",
        "A rule may be recursive, but only behind a call: here it is reached from itself\n"
        "before any call is made (operands that can be empty are passed over, and both sides\n"
        "of `&` and `-` count). The message names the cycle. Most often a repetition says\n"
        "what is meant: `rule r = r a | a` is `rule r = a+`.",
        _TOOLS + "rule r = r search | search\nplan = r\n",
    ),
    "TCC208": Entry(
        "parameter named by a word of the block",
        "`cost price latency epsilon quotes doc bind model adapter` begin the attributes of a\n"
        "tool, so a parameter with such a name has it in double quotes, here and in the\n"
        'attributes: `tool a("model": small | large)`.',
        _HEAD + "tool a(model: small | large)\n",
    ),
    "TCC209": Entry(
        "state that no signature names",
        "`start` and `goal` name states of signatures. No tool takes or gives this one, so\n"
        "most likely it is misspelled.",
        _HEAD + "tool a : text -> answer\nstart txt\ngoal answer\n",
    ),
    "TCC210": Entry(
        "start without goal, or goal without start",
        "Signatures are checked from a start state to a goal state, so the two statements come\n"
        "together.",
        _HEAD + "tool a : text -> answer\nstart text\n",
    ),
    "TCC211": Entry(
        "given twice in a pattern",
        "A pattern names each parameter once, and each of its values once.",
        _TOOLS + "plan = search(k=5|5)\n",
    ),
    "TCC212": Entry(
        "statement that may stand once",
        "A grammar has one `grammar`, one `plan`, one `start` and one `goal` statement at\n"
        "most. Several goals stand in one statement: `goal text | number`.",
        _TOOLS + "plan = search\nplan = rerank\n",
    ),
    "TCC213": Entry(
        "grammar statement missing or not first",
        'A grammar file begins with `grammar NAME version "V"`.',
        "tool a\nplan = a\n",
    ),
    "TCC214": Entry(
        "no tool",
        "A plan is a sequence of calls of tools, so a grammar has one tool at least, in its\n"
        "own file or in one that it uses.",
        _HEAD,
    ),
    "TCC215": Entry(
        "signature without start and goal",
        "A signature `TAKES -> GIVES` says which state a call takes and which it leaves. It is\n"
        "held from the `start` state to a `goal` state; without these two statements it would\n"
        "hold nothing, and a call could come first whatever it takes.",
        _HEAD + "tool read_secret : user -> user\nplan = read_secret\n",
    ),
    "TCC216": Entry(
        "open parameter where calls are told apart",
        "An open parameter, one behind the semicolon of its tool, is no part of what tells\n"
        "calls apart: no pattern names it, and no cost depends on it. Values that the plans\n"
        "depend on are listed before the semicolon. What a gate should refuse is said by the\n"
        "type: a range, a length, a pattern of text. That two calls have one value is said by\n"
        "`same`.",
        _HEAD + "tool pay(; order: text)\nplan = pay(order=x)\n",
    ),
    "TCC217": Entry(
        "strict tool that answers nothing",
        "`strict` cuts a grammar down to plans that go on whatever a tool answers. It goes\n"
        "with `gives`, which lists what may be answered.",
        _HEAD + "tool check { strict }\n",
    ),
    "TCC219": Entry(
        "values that cannot be compared",
        "`same` compares values of one kind: of two listed parameters, or of two open ones of\n"
        "one type (text, flag, json as its canonical text, or numbers, where integer and number\n"
        "go together).",
        _HEAD + "tool a(; k: text)\ntool b(; k: integer)\nrequire a before b same k\n",
    ),
    "TCC220": Entry(
        "observed parameter where a gate decides",
        "What a tool answers is known when the call was made. A statement that a gate decides\n"
        "by, one about open parameters, can look back at the answer of a call before: the\n"
        "pattern in front of `before` may name it. The call that is decided on has no answer\n"
        "yet: neither the pattern behind `before` may name one, nor one of `with`, either of\n"
        "which may come last, nor that of `limit uses`. `same` and `per` compare what calls\n"
        "ask for, and no answers.",
        _HEAD
        + "tool ask(; id: text) gives (ok: yes | no)\ntool act(; id: text)\n"
        + "forbid ask(ok=no) with act same id\n",
    ),
    "TCC221": Entry(
        "used file cannot be read",
        "The path is relative to the file with the `use` statement. The file has to be\n"
        "regular and readable.",
        _HEAD + 'use "no_such_file.tcg"\ntool a\n',
    ),
    "TCC222": Entry(
        "used file outside the folder",
        "With symbolic links resolved, a used file lies in the folder of the grammar or below\n"
        "it, so that a grammar cannot read whatever lies about. A text that comes from no\n"
        "file uses none.",
        _HEAD + 'use "/etc/hosts"\ntool a\n',
    ),
    "TCC223": Entry(
        "files use each other in a circle",
        "The message names the circle. Move what both need into a file of its own.",
    ),
    "TCC224": Entry(
        "statement that a used file may not have",
        "A used file lends its tools: it has `tool` and `use` statements and no others.",
    ),
    "TCC225": Entry(
        "relation of values that do not compare",
        "Numbers are ordered with numbers and times with times; values of other kinds are equal\n"
        "or not, and values of different kinds never are. A pattern is of a text, `in` and\n"
        "`count` of a list. Only numbers are added up, and times moved by durations. A field\n"
        "that several tools of a set have is of one kind in all of them.",
        'grammar g version "1"\ntool a(k: 1 | 2)\ntool b\nrequire a where seen.k < "x" before b\n',
    ),
    "TCC227": Entry(
        "part of a statement that does not fit",
        "An alternative asks for 1 to 1000 calls. `same` behind the second set belongs to the\n"
        "one set before it; with several alternatives each has its own. A window is a whole\n"
        "number of milliseconds.",
        'grammar g version "1"\ntool a\ntool b\nrequire 0 a before b\n',
    ),
    "TCC228": Entry(
        "what does not pass a gate",
        "`pass resources, prompts, input` lets these parts of MCP through `tcc gate`, unread.\n"
        "Nothing else passes: calls are decided, logging and completions are not forwarded.",
        'grammar g version "1"\ntool a\npass resources, logging\n',
    ),
}
