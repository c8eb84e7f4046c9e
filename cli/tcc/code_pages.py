"""Pages of diagnostic codes: titles, texts and links (exit codes are in :mod:`tcc.main`).

This module has the texts of the codes in :mod:`tcc_certs.errors`: kernel, ledgers, quotes, atoms
and gates.  The compiler's catalogue has the texts of grammar codes.
:mod:`tcc_experiments.pipeline.errors` has the texts of pipeline codes.

The environment variable TCC_DOCS_URL is the URL of the folder `docs`, on a forge or a site.  Links
are relative to it.  Without it a link is a URN with the code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import StrEnum

from tcc_certs.errors import Code
from tcc_compiler.language.catalogue import CATALOGUE, explain
from tcc_experiments.pipeline.errors import TEXTS as OF_PIPELINE

TEXTS: Mapping[Code, str] = {
    Code.JSON_SYNTAX: "The bytes are not a JSON text in UTF-8, or are nested too deeply.",
    Code.JSON_NOT_CANONICAL: "The content of the JSON is allowed, but it is not in canonical "
    "form: members in order, no spaces, shortest numbers.",
    Code.JSON_VALUE: "The JSON has a value that canonical JSON excludes, such as a float or a"
    " repeated member.",
    Code.HEADER_LENGTH: "The first eight bytes give a header that is empty, too long or longer "
    "than the file. The file is no artifact (a grammar has to be compiled first) or is cut off.",
    Code.HEADER_SCHEMA: "The header does not list tensors in the form of a container.",
    Code.HEADER_NOT_CANONICAL: "The header is not in the one form that its content has.",
    Code.TENSOR_LAYOUT: "The columns do not follow one another in order and without gaps.",
    Code.DATA_LENGTH: "The file is shorter or longer than its header says.",
    Code.MANIFEST_SCHEMA: "A member of the manifest is missing, unknown or of another type.",
    Code.MANIFEST_VALUE: "A member of the manifest has a value that is not allowed.",
    Code.COLUMN_SET: "A column is missing, or there is one that this kind of artifact does "
    "not have.",
    Code.COLUMN_SHAPE: "The type or size of a column does not follow from the numbers of "
    "states, edges and calls.",
    Code.COLUMN_DIGEST: "The bytes of a column are not those that the manifest names: the file was "
    "changed or damaged.",
    Code.CALL_TABLE: "The texts of the calls are not distinct, in order and in UTF-8.",
    Code.CALL_WEIGHT: "The weight of a call is not the one that follows from its cost, beta and "
    "tilt.",
    Code.TOOL_TABLE: "The tools that the file lists are not those of its core.",
    Code.EDGE_RANGE: "An edge names a call or a state that does not exist.",
    Code.EDGE_ORDER: "The edges of a state are not distinct and in order of their calls.",
    Code.ACCEPT_VALUE: "The mark that a plan may stop is neither 0 nor 1.",
    Code.EDGE_START: "The offsets of the edges do not increase from 0 to the number of edges.",
    Code.TARGET_ORDER: "An edge does not lead to a state with a smaller number: there may be "
    "a cycle.",
    Code.RANK: "A rank is not one more than the greatest among the targets.",
    Code.TARGET_NUMBER: "A state of an automaton with cycles does not have the number that "
    "breadth-first search gives it.",
    Code.CALLS_TO_GO: "The fewest calls from a state to an end are not one more than the least "
    "among the targets, or no end can be reached.",
    Code.PLAN_COUNT: "The number of plans of a state is not the sum over its edges. These numbers "
    "are the suffix counts, the paper's SuffixCountDP.",
    Code.PLAN_WIDTH: "The numbers of plans are wider than the greatest of them needs.",
    Code.RACE_COUNT: "The race count of a state is not the weighted sum over its edges.",
    Code.RACE_WIDTH: "The race counts are wider than the greatest of them needs.",
    Code.COST_TO_GO: "The least cost from a state is not the least over its edges.",
    Code.RESIDUAL_TO_GO: "The residual to go of a state is not the greatest over its edges.",
    Code.COST_MAX: "The greatest cost of a call is not the one that the manifest gives.",
    Code.BOUND_RANGE: "A bound leaves 64 bits.",
    Code.STATE_DIGEST: "The digest of a state is not that of its edges and its mark.",
    Code.STATE_ORDER: "States are not in order of rank and digest, or two are the same.",
    Code.UNREACHABLE: "A state is not reached from the root.",
    Code.DEAD_STATE: "No plan can be finished from a state.",
    Code.UNUSED_CALL: "A call is on no edge.",
    Code.SPLIT_FORM: "The order of the states is no permutation, or a split has a place, a call or "
    "an earlier split that does not exist.",
    Code.SPLIT: "A split separates nothing, so two states may have the same plans.",
    Code.LEAF_POLICY: "The names of plans follow another policy than this format's.",
    Code.ROOT_CONTEXT: "The context of the root is not that of grammar, version and limits.",
    Code.CORE_SCHEMA: "The core is not a core (docs/spec/core.md).",
    Code.CORE_MISMATCH: "Calls, costs, prices, names or texts of limits are not those of the core.",
    Code.RELAXED: "The statements that were left to the run are not statements of the core.",
    Code.STRICT_ANSWER: "A call of a strict tool has an edge, but not every answer that the "
    "call may get has one.",
    Code.STRICT_FEATURE: "A tool is strict, and the automaton is relaxed or nondeterministic:"
    " the edges of such an automaton do not show that plans continue "
    "after every answer.",
    Code.CORE_ACCEPT: "After the calls shown, the automaton may stop and the core may not, or"
    " the other way round: the artifact is not the automaton of its "
    "grammar.",
    Code.CORE_NEXT_CALL: "After the calls shown, only the automaton or only the core allows a"
    " call: the artifact is not the automaton of its grammar.",
    Code.CORE_DERIVATIVES: "The nondeterministic graph is not that of the core's partial "
    "derivatives.",
    Code.CORE_SOURCE: "The core is not that of the grammar given with --source.",
    Code.PIN: "The digest is not the pinned one: it is another artifact.",
    Code.NOT_EXACT: "The check requires exactness (--exact), but something is relaxed: "
    "statements are left to a run, counts are rounded, or derivations are "
    "counted instead of plans.",
    Code.LEDGER_LINE: "A line is not canonical JSON of an object.",
    Code.LEDGER_CHAIN: "A line does not follow from the one before: a line was changed, left out "
    "or moved.",
    Code.LEDGER_SCHEMA: "A record does not have the members of its kind.",
    Code.LEDGER_ORDER: "A record of this kind is not possible at this position.",
    Code.LEDGER_HEADER: "The first record does not describe a possible run.",
    Code.LEDGER_ARTIFACT: "The run is over another artifact.",
    Code.RUN_ID: "The identity of the run does not follow from its header.",
    Code.SEED: "The seed is not the one that was committed to.",
    Code.OPENING: "The salt does not open the commitment to the seed.",
    Code.OPENING_DIGEST: "The opening is not the one that was handed out before.",
    Code.BEACON: "The beacon is not the one that was given.",
    Code.NONCE: "The client's nonce is not the one that was given.",
    Code.CONTEXT_DIGEST: "A node's context does not follow from its parent and its call.",
    Code.NODE_FIELD: "A field of a record is not the one that follows from the run so far.",
    Code.UNIFORM: "A random number is not the one that the seed gives at this place.",
    Code.WINNER: "Another child wins the arrival of this node.",
    Code.ARRIVAL: "An arrival is not the one that the race gives.",
    Code.KEY: "A key is not the greatest score that the node's plans can have.",
    Code.VALUE: "The value of a plan is not its score.",
    Code.POP_ORDER: "Another item of the frontier has the greatest key.",
    Code.MISSING_CHILD: "A child of an expanded node is missing.",
    Code.REPEATED_CONTEXT: "A node was pushed before.",
    Code.GUARD: "A guard fired and is not named, or is named and did not fire.",
    Code.POTENTIAL: "The potential is not the one that follows from the frontier.",
    Code.INCUMBENT: "The best plans so far are not those that were found.",
    Code.STOP_RULE: "The run stopped before its stop rule allows it, or continued after the "
    "rule had stopped it.",
    Code.COVERAGE: "Plans are covered by no item of the frontier, or by two.",
    Code.CLAIM: "The claim is stronger than what the run has shown.",
    Code.CLOSE_FIELD: "A field of the last record is not the one that follows from the run.",
    Code.TAIL: "The bound for the plans that were cut off is not the one that follows.",
    Code.REQUEUE: "A plan whose cost became known is not in the frontier as it should be.",
    Code.ASK: "The run asked about a call when no question was due, or did not ask when one was.",
    Code.ANSWER: "An answer is outside the range that the grammar declares, or of another model.",
    Code.SPENT: "The total that questions have taken is not the sum over the questions.",
    Code.RDP_EPSILON: "router_rdp_eps is not the sum of the atoms so far at the order that "
    "gives the least epsilon.",
    Code.RDP_ORDER: "alpha_selected is not the order that gives the least epsilon at this delta.",
    Code.EPS_DELTA: "eps_delta is not the epsilon of the atoms so far at the delta of the run.",
    Code.ATOM_TAKEN: "An ask names no atom although its model has one, or names an atom in a "
    "run that counts none.",
    Code.RESERVATION: "The account of a run, a reservation, or the remainder of a cap "
    "contradicts the run's own sums.",
    Code.MARGIN: "dkey_margin does not follow from the earlier residuals of the model.",
    Code.QUOTES: "The file is no book of quotes: a JSON object with format, version and quotes, "
    "each with one call or one tool and its cost, or low and high, as decimals in texts.",
    Code.QUOTED_TWICE: "The book has two quotes for one call or tool.",
    Code.QUOTED_UNKNOWN: "The book names a call, a tool or a model that the artifact does not"
    " have.",
    Code.ADAPTER_REGISTRY: "The file is no registry of adapters, or an entry is malformed.",
    Code.ADAPTER_UNKNOWN: "A model runs with an adapter that the registry does not have, or no "
    "registry was given.",
    Code.ADAPTER_MISSING: "The folder of an adapter, or a file of it, is missing or cannot "
    "be read.",
    Code.ADAPTER_FORM: "A file in an adapter's folder is not in the format of PEFT or safetensors.",
    Code.ADAPTER_INCONSISTENT: "Rank, target modules and tensors of a LoRA adapter contradict"
    " one another.",
    Code.ADAPTER_ALTERED: "An adapter is not the one that its entry in the registry names: its "
    "configuration or its tensors were changed.",
    Code.ADAPTER_TRAINING: "The training of an adapter has a greater epsilon, at its delta, "
    "than its entry says.",
    Code.ADAPTER_LEDGER: "A ledger and the registry describe an adapter differently.",
    Code.ACCOUNT_FORM: "The file is no account, or a damaged one: it is no SQLite database, "
    "has other tables, or has sums that are not those of its reservations.",
    Code.ACCOUNT_VERSION: "The account is of another version of the schema.",
    Code.ACCOUNT_CLOSED: "The file of an account, or its folder, cannot be read or written.",
    Code.ACCOUNT_LOCKED: "Other processes locked the account for longer than the time limit.",
    Code.ACCOUNT_CAPS: "A cap of an account is out of its range, or differs from the cap that"
    " the account was made with.",
    Code.ACCOUNT_LEASE: "A reservation has lapsed, was settled, or does not exist, so the run"
    " cannot continue with it. `tcc run --resume` makes a new one.",
    Code.ACCOUNT_LEDGER: "A ledger names another account, or reservations that the account "
    "does not have or has with other amounts.",
    Code.ATOMS: "The file is no list of atoms: a JSON list of objects, each with its "
    "mechanism and the parameters of that mechanism, as decimals in texts.",
    Code.ATOM_VALUE: "A parameter of an atom is out of its range: there is no such mechanism,"
    " or it protects nobody.",
    Code.MANY_ATOMS: "The list has too many atoms; `times` composes an atom with itself.",
    Code.NEIGHBOURS: "The atoms use two relations of neighbours: for the subsampled Gaussian "
    "a record is added or removed, for all others it is replaced. Their "
    "epsilons do not add up.",
    Code.SESSION_HEADER: "The first record does not describe a session of this artifact, or "
    "says that the ledger shows a field that is not open.",
    Code.SESSION_ID: "The identity of the session does not follow from its first record.",
    Code.SESSION_STATEMENTS: "The statements of the first record are not those of the artifact.",
    Code.SESSION_KEY: "The key given with --key is not the one that the session commits to.",
    Code.SESSION_SEQ: "The number of a call is not the next one, an outcome belongs to another "
    "call, or a time is before an earlier one.",
    Code.SESSION_CALL: "The artifact has no call of this text.",
    Code.SESSION_OPEN: "An entry of a field is missing or not declared, or an entry has a member "
    "that the statements do not need and the first record does not show.",
    Code.SESSION_VALUE: "A shown value is not of its field's type, is outside its limits, or "
    "differs from the field that contains it.",
    Code.SESSION_DIGEST: "A digest is not that of the value shown with it, or two shown "
    "values have one digest, or one value has two.",
    Code.SESSION_STATES: "The states before a call are not those that the session may be in.",
    Code.SESSION_CALL_KEY: "The idempotency key of a call does not follow from the session's key.",
    Code.SESSION_REPEATED: "Two calls have one idempotency key or one reference.",
    Code.SESSION_OUTCOME: "An outcome has a field that outcomes of its kind do not have.",
    Code.SESSION_OBSERVED: "The recorded answers are not those that the tool declares.",
    Code.SESSION_REFUSAL: "A refusal names a tool or a statement that the grammar does not have, "
    "or a reason that no refusal has.",
    Code.SESSION_RESOLVE: "A later record resolves a call whose outcome is already known.",
    Code.SESSION_ACROSS: "The amount that a call records as drawn on limits across sessions "
    "is not what it draws, or falls below what earlier calls recorded.",
    Code.SESSION_ASK: "A question names a statement that does not ask about this call, another "
    "role, or another term.",
    Code.SESSION_APPROVAL: "A verdict belongs to no open question, or comes after its term.",
    Code.SESSION_APPROVALS: "A call lacks an approval that it needs, or names one that is used, "
    "expired, denied or for another call.",
    Code.SESSION_CONTINUES: "A file of the ledger is missing, cut, doubled, of another session "
    "or in another place.",
    Code.SESSION_CARRIED: "The policy changed in the session, and earlier records lack something "
    "that the new artifact needs: a call, a value of an argument, a time.",
    Code.SESSION_PLANS: "A call was made although no plan continues with it.",
    Code.SESSION_STATEMENT: "A call was made that a statement refuses.",
    Code.SESSION_POSITIONS: "A call was made after which the session may hold more than 64 "
    "positions.",
    Code.SESSION_FINISH: "The session ended although it may not finish: no plan ends there, or a "
    "`finally` or an `owe` is not satisfied.",
    Code.SESSION_BUDGET: "The budget of the session is invalid: a weight, a margin or a delta"
    " is out of its range, the adapters are not those of the grammar's "
    "models, or there is a second budget.",
    Code.SESSION_MODEL: "The call was not made by the model that the controller chooses, no "
    "model fits the remaining budget, or a record describes a model "
    "wrongly.",
    Code.SESSION_AMOUNT: "The expected amount of a call, a sum, or the remainder of a cap "
    "does not follow from the earlier records.",
    Code.SESSION_RESERVATION: "The reservation of the account is not the one that follows.",
    Code.SESSION_PARENT: "The ledger is not that of a session of this parent: its first "
    "record names another parent or none, or the parent's own ledger is "
    "not valid.",
    Code.SESSION_DELEGATED: "The parent's ledger does not have the call that the child's "
    "ledger has at this line, or has it with other arguments or in "
    "another order; or it has a call for the child that the child's "
    "ledger does not have.",
    Code.SESSION_SETTLED: "The outcome of a call differs between the child's ledger and the "
    "parent's.",
    Code.UNKNOWN_TOOL: "The grammar has no tool of this name.",
    Code.UNDECLARED_ARGUMENT: "The tool has no argument of this name.",
    Code.MISSING_ARGUMENT: "An argument that is not optional is missing.",
    Code.UNLISTED_VALUE: "The value of a listed argument is not one that the grammar lists.",
    Code.OPEN_VALUE: "The value of an open argument is of another type, too long or too short, "
    "out of its range, or does not match its pattern; or a record in it has a member that is not "
    "declared.",
    Code.NO_VALUE: "Not every program reads this JSON value alike: it is NaN or infinite, half of "
    "a surrogate pair, nested too deeply, or a number that is neither whole and from -2^63 to "
    "2^64 - 1 nor what its nearest double prints.",
    Code.NOT_PLANNED: "No plan continues with this call here, or, if an outcome is unknown, "
    "not from every state that the session may be in.",
    Code.STATEMENT_REFUSES: "A `require`, a `forbid` or a `limit` refuses the call. The refusal "
    "shows the statement. A condition that depends on a value that is not known refuses, too.",
    Code.TOTAL_EXCEEDED: "With this call a total would exceed its bound: `limit depth`, `price`, "
    "`cost`, `latency` or `epsilon`.",
    Code.MAY_NOT_FINISH: "The session may not finish: no plan ends here, or a `finally` or an "
    "`owe` is not satisfied. An unknown outcome may be the reason.",
    Code.NO_MODEL: "No model that may make the call fits the remainder of the session's budget, or "
    "of its account.",
    Code.EVALUATION_CUT: "The statement looks at the latest calls, or at the first elements of a "
    "list, up to a bound. They do not decide that the call is allowed.",
    Code.OVERDUE: "An obligation of this statement is overdue: `after .. owe .. within`. Make the "
    "call that is owed first.",
    Code.DENIED: "A person denied this call. It stays refused until the question expires.",
    Code.CLOCK_BEHIND: "The clock of the gate is more than 60 s behind the last record of the "
    "ledger. Set the clock.",
    Code.PENDING: "A person has to decide this call first: `ask`. The call was not made. "
    "Approve it with `gate.approve` or `tcc session approve`, and make the same call again.",
    Code.MANY_STATES: "So many outcomes are unknown that the session might hold more than 64"
    " positions. Resolve some of them first.",
    Code.ENDED: "The session has ended.",
    Code.ALREADY_DONE: "The ledger already has a call with this identity, and no call is made"
    " twice.",
    Code.NESTED_CALL: "A call was requested inside another call of the same thread or task.",
    Code.NOT_WRITTEN: "The ledger cannot be written, so no call may be made.",
    Code.SERVER_AWAY: "The server of this tool is missing, has ended, or lists other tools "
    "than it should. The call was not made. The gate tries the server "
    "again; tools of other servers stay available.",
    Code.MANY_WAITING: "The queue of calls that wait for those under way is full.",
    Code.MANY_QUESTIONS: "10,000 questions of the session are open. Let persons decide about some "
    "of them (`tcc session pending`), or wait until some expire.",
    Code.PROOF_SCHEMA: "The file is no proof of an exact question, or a member has another form.",
    Code.PROOF_QUESTION: "The question of the proof is no statement of this core, or no proof can "
    "be about it.",
    Code.PROOF_CORE: "The proof is about another core. Name the artifact that it is about.",
    Code.PROOF_ARGUMENT: "An argument of the proof is missing, there is another one, or it names "
    "other statements than it uses.",
    Code.PROOF_STEP: "A step of the proof does not hold, or a branch of an argument is left open.",
    Code.UNKNOWN_FEATURE: "The file needs a feature that this version does not know.",
    Code.UNKNOWN_VERSION: "The file is of a version that this version does not know.",
    Code.LIMIT: "The input exceeds a limit on size, memory or steps.",
    Code.PRECISION: "A rounding stayed open at the greatest precision.",
    Code.NO_RACE: "The artifact is for a gate and has no race counts: compile the grammar again "
    "without --for gate.",
    Code.ENDLESS: "The plans of the artifact have no bound, so it has no counts: only a gate can "
    "use it. For a run or a count, add `limit depth <= N` to the grammar and compile it without "
    "--for gate.",
    Code.INCOMPLETE: "The ledger ends before its last record: the records that exist are "
    "verified, and nothing is claimed. `tcc run --resume` continues the run.",
    Code.WITHHELD: "The seed is withheld, so the run cannot be replayed; give it with --seed.",
}

_PAGES = {
    "B": "docs/spec/artifact.md",
    "M": "docs/spec/artifact.md",
    "C": "docs/spec/artifact.md, section 5",
    "G": "docs/spec/core.md",
    "P": "docs/spec/artifact.md",
    "L": "docs/spec/ledger.md",
    "S": "docs/spec/session.md",
    "T": "docs/spec/proof.md",
    "Q": "docs/ranges.md",
    "A": "docs/adapters.md",
    "K": "docs/budgets.md",
    "E": "docs/privacy.md",
    "R": "docs/spec/session.md, section 8",
    "D": "docs/spec/artifact.md and ledger.md",
}


def explain_code(text: str) -> str | None:
    """Return the page of a kernel code as plain text, or None if the code is unknown."""
    found = next((known for known in Code if known.value == text), None)
    if found is None:
        return None
    verdict = "input is declined" if found.declines else "input is invalid"
    if text[0] == "R":
        verdict = "call waits" if found is Code.PENDING else "call is refused"
    return f"{text}: {title(found)}\n\n{TEXTS[found]}\n\nThe {verdict}; {_PAGES[text[0]]}."


def page_of(code: Code) -> str:
    """Return the specification page of a code, with the section where one is known."""
    return _PAGES[code.value[0]]


def title(code: StrEnum) -> str:
    """Return a short title made from the name of a code, such as `json syntax`."""
    return code.name.lower().replace("_", " ")


DOCS = "TCC_DOCS_URL"


def text_of(code: str) -> str | None:
    """Return the page of any code (grammar, kernel or pipeline) as plain text, or None."""
    return explain(code) or explain_code(code) or _of_pipeline(code)


def _of_pipeline(code: str) -> str | None:
    found = next((known for known in OF_PIPELINE if known.value == code), None)
    if found is None:
        return None
    return f"{code}: {title(found)}\n\n{OF_PIPELINE[found]}\n\nThe call failed; docs/pipeline.md."


def titles() -> dict[str, str]:
    """Return the title of every code, by code."""
    pages = {code: entry.title for code, entry in CATALOGUE.items()}
    return pages | {code.value: title(code) for code in (*Code, *OF_PIPELINE)}


def link_of(code: str) -> str:
    """Return the URL of a code's page below TCC_DOCS_URL, or ``urn:tcc:code:CODE`` without it."""
    base = os.environ.get(DOCS, "").rstrip("/")
    if not re.fullmatch(r"https?://[!-~]+", base):
        return f"urn:tcc:code:{code}"
    entry = CATALOGUE.get(code)
    if entry is None and _of_pipeline(code) is not None:
        return f"{base}/pipeline.md"
    if entry is None:
        return f"{base}/{re.split(' |,', page_of(Code(code)))[0].removeprefix('docs/')}"
    anchor = re.sub(r"[^a-z0-9_ -]", "", f"{code}: {entry.title}".lower()).replace(" ", "-")
    return f"{base}/errors.md#{anchor}"
