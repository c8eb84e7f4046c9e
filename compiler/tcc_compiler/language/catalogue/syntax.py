"""TCC1xx: bytes, characters, tokens, statements."""

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
        "that is none.",
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
