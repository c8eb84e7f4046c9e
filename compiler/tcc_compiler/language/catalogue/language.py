"""TCC4xx: the set of plans; TCC5xx: what its author says of it."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

_HEAD = 'grammar g version "1"\n'

LANGUAGE: Mapping[str, Entry] = {
    "TCC401": Entry(
        "infinitely many plans",
        "A grammar stands for a finite set of plans. With every limit applied there is still\n"
        "a cycle of calls that can be gone round for ever and left towards a plan; the\n"
        "message shows its calls. `limit depth <= N` cuts every cycle, `limit uses(tool) <=\n"
        "N` those with that tool, `limit price`, `latency` or `epsilon` those whose calls\n"
        "have one.",
        _HEAD + "tool a\nplan = a*\n",
    ),
    "TCC402": Entry(
        "no plan at all",
        "Every sequence of calls is ruled out by some statement. The message names a few that\n"
        "leave none together, each with its place: change one of them. Where these cannot be\n"
        "found with little work, it names the one at which the last plan was lost.",
        _HEAD + "tool a\nplan = a\nlimit depth <= 0\n",
    ),
    "TCC403": Entry(
        "too many states",
        "The automaton on the way to the artifact has more states than `--max-states` allows.\n"
        "The message names the pass, and the statement behind the states where one is known.\n"
        "Limits of several kinds multiply; a limit that never binds still costs. Nothing is\n"
        "left out unasked: the notes name what `--relax auto` would leave to a run, and how\n"
        "many states are left then.",
    ),
    "TCC404": Entry(
        "out of time",
        "Compiling took longer than `--timeout` allows. The message names the pass, the notes\n"
        "the ways on (see TCC403), as far as there was time to look.",
    ),
    "TCC405": Entry(
        "a bound leaves 64 bits",
        "The cheapest completion, or the residual, of some state does not fit into 64 bits.\n"
        "Use smaller costs, a smaller beta, or a lower limit on depth.",
    ),
    "TCC406": Entry(
        "recursion that could not be decided",
        "A rule stands in itself inside an operand of `&` or `-`, no limit bounds how deep it\n"
        "goes, and whether its plans are finitely many was not found within the bounds of\n"
        "the search. Recursion that is found to have no end is TCC401. Add\n"
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
        "The bytes that were to be compiled are not the canonical core of a grammar\n"
        "(docs/spec/core.md). A grammar file never leads here.",
    ),
    "TCC410": Entry(
        "an artifact that fails its own check",
        "Every artifact is checked as a reader would check it before it is handed out. This\n"
        "one failed, which is a defect of the compiler: please report it with the grammar.",
    ),
    "TCC411": Entry(
        "CountFail: bounds in place of counts",
        "A warning, where `--relax auto` asks for it. The exact automaton meets `--max-states`,\n"
        "`--timeout` or `--count-bits`, or its state sets multiply, so the artifact has\n"
        "`counts: upper`. The message names the\n"
        "pass, the figure that it reached and what is behind it, and says what was given up:\n"
        "the statement that multiplied the states most is left to a run, which enforces it; or\n"
        "derivations are counted in place of plans; or race counts are rounded up. Searches\n"
        "over it are certified in surrogate mode. Without `--relax auto` this is an error.",
    ),
    "TCC412": Entry(
        "a statement that cannot be relaxed",
        "`--relax` takes `auto`, a kind (price, latency, cost, epsilon, uses, sum, depth,\n"
        "require, forbid) or the canonical text of one limit, such as `uses(search)<=2`. It\n"
        "must name a statement of the grammar; without it there must still be finitely many\n"
        "plans; and a limit on cost can only be relaxed where no call costs less than nothing,\n"
        "since a run adds up costs and could not tell a sum that comes back.",
    ),
    "TCC413": Entry(
        "no plan statement",
        "A warning. The grammar has neither `plan` nor `start` and `goal`: every sequence of\n"
        "calls that the other statements allow is a plan. Write a `plan`, or `plan = any*`\n"
        "where this is meant.",
        _HEAD + "tool a\nlimit depth <= 2\n",
    ),
    "TCC414": Entry(
        "no plan goes on after every answer",
        "The world chooses what a call of a tool with `gives` answers. A tool that is `strict`\n"
        "may be called only where, whatever it answers, a plan goes on, and then goes on so;\n"
        "every other call of it is cut. Here nothing is left. The message shows the nearest\n"
        "call with an answer that leads nowhere: say what follows that answer, or take `strict`\n"
        "away; then a gate asks for nothing but that some answer leads on.",
    ),
    "TCC415": Entry(
        "strict, and relaxed",
        "Whether every answer of a strict tool leads on is known of the exact automaton alone.\n"
        "Where statements are left to a run, or derivations are counted, there are states that\n"
        "only seem to lead on. Leave `--relax` out, or take `strict` away.",
    ),
    "TCC416": Entry(
        "call with too many answers for a session",
        "A warning. While it is not known what a call was answered, a session holds every place\n"
        "where it may be: before the call, after each answer, and nowhere where an answer has\n"
        "no plan. At most 64 are held, so a gate refuses a call that may lead to more (R301):\n"
        "this one can be planned, and never made there. Answers after which the same may follow\n"
        "lead to one place. List fewer values in `gives`, or let statements tell fewer apart.",
    ),
}
EXAMPLES: Mapping[str, Entry] = {
    "TCC501": Entry(
        "accept line that does not hold",
        "`accept` says that at least one sequence of calls that matches its patterns is a\n"
        "plan. None is. Either the line or the grammar is wrong. The message says how far plans\n"
        "go along with the line, and what could stand where it leaves them; `tcc test` and\n"
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
        _HEAD + "tool a\nplan = a?\nexpect plans == 3\n",
    ),
    "TCC504": Entry(
        "example or expectation that was not decided",
        "A warning. The artifact has bounds in place of counts (see TCC411), and they leave\n"
        "open whether this line holds: a number of plans that is known from above alone says\n"
        "nothing of `==`. Compile without `--relax` and with larger limits to decide it.",
    ),
}
