"""Pages of diagnostic codes: titles, texts and links (exit codes are in :mod:`tcc.main`).

Codes of the kernel, ledgers, quotes, atoms and gates (:mod:`tcc_certs.errors`) have a sentence each
here; codes of grammars have their pages in the catalogue of the compiler, codes of the pipeline in
:mod:`tcc_experiments.pipeline.errors`.  A link leads below TCC_DOCS_URL, the folder `docs` of a
checkout on a forge or a site; without it the link is a URN that names the code.
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
    Code.JSON_SYNTAX: "The bytes are no JSON text in UTF-8, or are nested too deeply.",
    Code.JSON_NOT_CANONICAL: "The JSON says what it may, but is not written in canonical form: "
    "members in order, no spaces, shortest numbers.",
    Code.JSON_VALUE: "The JSON holds a value that canonical JSON has not, such as a float or a "
    "member named twice.",
    Code.HEADER_LENGTH: "The first eight bytes give a header that is empty, too long or longer "
    "than the file. The file is no artifact (a grammar has to be compiled first) or is cut off.",
    Code.HEADER_SCHEMA: "The header does not list tensors as a container does.",
    Code.HEADER_NOT_CANONICAL: "The header is not the one byte string that its content has.",
    Code.TENSOR_LAYOUT: "The columns do not lie one after the other, without gaps, in order.",
    Code.DATA_LENGTH: "The file is shorter or longer than its header says.",
    Code.MANIFEST_SCHEMA: "A member of the manifest is missing, unknown or of another type.",
    Code.MANIFEST_VALUE: "A member of the manifest has a value that it may not have.",
    Code.COLUMN_SET: "A column is missing, or there is one that this kind of artifact has not.",
    Code.COLUMN_SHAPE: "A column has another type or size than the numbers of states, edges and "
    "calls give it.",
    Code.COLUMN_DIGEST: "The bytes of a column are not those that the manifest names: the file was "
    "changed or damaged.",
    Code.CALL_TABLE: "The texts of the calls are not distinct, in order and in UTF-8.",
    Code.CALL_WEIGHT: "The weight of a call is not the one that follows from its cost, beta and "
    "tilt.",
    Code.TOOL_TABLE: "The tools that the file lists are not those of its core.",
    Code.EDGE_RANGE: "An edge names a call or a state that is not there.",
    Code.EDGE_ORDER: "The edges of a state are not distinct and in order of their calls.",
    Code.ACCEPT_VALUE: "The mark that a plan may stop is neither 0 nor 1.",
    Code.EDGE_START: "The offsets of the edges do not increase from 0 to the number of edges.",
    Code.TARGET_ORDER: "An edge does not lead to a state of lesser number: there may be a cycle.",
    Code.RANK: "A rank is not one more than the greatest among the targets.",
    Code.PLAN_COUNT: "The number of plans of a state is not the sum over its edges.",
    Code.PLAN_WIDTH: "The numbers of plans are wider than the greatest of them needs.",
    Code.RACE_COUNT: "The race count of a state is not the weighted sum over its edges.",
    Code.RACE_WIDTH: "The race counts are wider than the greatest of them needs.",
    Code.COST_TO_GO: "The least cost from a state is not the least over its edges.",
    Code.RESIDUAL_TO_GO: "The greatest remainder from a state is not the greatest over its edges.",
    Code.COST_MAX: "The greatest cost of a call is not the one that the manifest gives.",
    Code.BOUND_RANGE: "A bound leaves 64 bits.",
    Code.STATE_DIGEST: "The digest of a state is not that of its edges and its mark.",
    Code.STATE_ORDER: "States are not in order of rank and digest, or two are the same.",
    Code.UNREACHABLE: "A state is not reached from the root.",
    Code.DEAD_STATE: "No plan can be finished from a state.",
    Code.UNUSED_CALL: "A call is on no edge.",
    Code.LEAF_POLICY: "The names of plans follow another policy than this format's.",
    Code.ROOT_CONTEXT: "The context of the root is not that of grammar, version and limits.",
    Code.CORE_SCHEMA: "The core is not a core (docs/spec/core.md).",
    Code.CORE_MISMATCH: "Calls, costs, prices, names or texts of limits are not those of the core.",
    Code.RELAXED: "The statements that were left to the run are not statements of the core.",
    Code.STRICT_ANSWER: "A call of a strict tool has an edge, and not every answer that it may get "
    "has one.",
    Code.STRICT_FEATURE: "A tool is strict, and the automaton is relaxed or nondeterministic: what "
    "strict promises is not shown by the edges of such an automaton.",
    Code.CORE_ACCEPT: "After the calls shown the automaton may stop and the core may not, or the "
    "other way round: the artifact is not the automaton of its grammar.",
    Code.CORE_NEXT_CALL: "After the calls shown a call is allowed by the automaton alone or by the "
    "core alone: the artifact is not the automaton of its grammar.",
    Code.CORE_DERIVATIVES: "The nondeterministic graph is not that of the core's partial "
    "derivatives.",
    Code.CORE_SOURCE: "The core is not the one that the grammar given with --source has.",
    Code.PIN: "The digest is not the pinned one: it is another artifact.",
    Code.NOT_EXACT: "Exactness was asked for, and something is relaxed: statements left to a run, "
    "rounded counts, or derivations counted in place of plans.",
    Code.LEDGER_LINE: "A line is not canonical JSON of an object.",
    Code.LEDGER_CHAIN: "A line does not follow from the one before: a line was changed, left out "
    "or moved.",
    Code.LEDGER_SCHEMA: "A record has not the members of its kind.",
    Code.LEDGER_ORDER: "A record stands where its kind may not stand.",
    Code.LEDGER_HEADER: "The first record does not describe a run that there can be.",
    Code.LEDGER_ARTIFACT: "The run is one over another artifact.",
    Code.RUN_ID: "The identity of the run does not follow from its header.",
    Code.SEED: "The seed is not the one that was committed to.",
    Code.OPENING: "What opens the commitment to the seed does not open it.",
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
    Code.STOP_RULE: "The run stopped where its rule does not stop, or went on where it does.",
    Code.COVERAGE: "Plans are covered by no item of the frontier, or by two.",
    Code.CLAIM: "The claim is stronger than what the run has shown.",
    Code.CLOSE_FIELD: "A field of the last record is not the one that follows from the run.",
    Code.TAIL: "The bound for the plans that were cut off is not the one that follows.",
    Code.REQUEUE: "A plan whose cost became known does not stand in the frontier as it should.",
    Code.ASK: "A call was asked about where none was due, or was not where one was.",
    Code.ANSWER: "An answer is outside the range that the grammar declares, or of another model.",
    Code.SPENT: "What asking has taken is not the sum of what was asked.",
    Code.RDP_EPSILON: "router_rdp_eps is not what the atoms so far come to at the order that gives "
    "the least epsilon.",
    Code.RDP_ORDER: "alpha_selected is not the order that gives the least epsilon at this delta.",
    Code.EPS_DELTA: "eps_delta is not what the atoms so far come to at the delta of the run.",
    Code.ATOM_TAKEN: "An ask names no atom though its model carries one, or names one in a run "
    "that counts none.",
    Code.RESERVATION: "The account of a run, a reservation, or what is said to be left of a cap "
    "does not go together with the run's own sums.",
    Code.MARGIN: "dkey_margin is not what the residuals of the model before it come to.",
    Code.QUOTES: "The file is no book of quotes: a JSON object with format, version and quotes, "
    "each with one call or one tool and its cost, or low and high, as decimals in texts.",
    Code.QUOTED_TWICE: "The book says two things of one call or tool.",
    Code.QUOTED_UNKNOWN: "The book names a call, a tool or a model that the artifact has not.",
    Code.ADAPTER_REGISTRY: "The file is no registry of adapters, or an entry of it has not "
    "its form.",
    Code.ADAPTER_UNKNOWN: "A model runs with an adapter that the registry does not have, or no "
    "registry was given.",
    Code.ADAPTER_MISSING: "The folder of an adapter, or a file of it, is missing or cannot "
    "be read.",
    Code.ADAPTER_FORM: "A file of an adapter's folder has not the form that PEFT and safetensors "
    "give it.",
    Code.ADAPTER_INCONSISTENT: "Rank, target modules and tensors of a LoRA adapter do not "
    "go together.",
    Code.ADAPTER_ALTERED: "An adapter is not the one that its entry in the registry names: its "
    "configuration or its tensors were changed.",
    Code.ADAPTER_TRAINING: "The training of an adapter comes to a greater epsilon, at its delta, "
    "than its entry says.",
    Code.ADAPTER_LEDGER: "A ledger says something else of an adapter than the registry.",
    Code.ACCOUNT_FORM: "The file is no account, or a damaged one: no SQLite database, one of "
    "other tables, or one whose sums are not those of its reservations.",
    Code.ACCOUNT_VERSION: "The account is of another version of the schema.",
    Code.ACCOUNT_CLOSED: "The file of an account, or its folder, cannot be read or written.",
    Code.ACCOUNT_LOCKED: "Others hold the account for longer than is waited.",
    Code.ACCOUNT_CAPS: "A cap of an account is out of its range, or not the one that it was "
    "made with.",
    Code.ACCOUNT_LEASE: "A reservation has ended or was settled, or there is none, so that the run "
    "cannot go on with it. `tcc run --resume` reserves anew.",
    Code.ACCOUNT_LEDGER: "A ledger names an account or reservations that the account has not, or "
    "has otherwise.",
    Code.ATOMS: "The file is no list of atoms: a JSON list of objects, each with its mechanism and "
    "that mechanism's numbers, as decimals in texts.",
    Code.ATOM_VALUE: "A number of an atom is out of its range: such a mechanism there is not, or "
    "it protects nobody.",
    Code.MANY_ATOMS: "The list has more atoms than are taken; `times` composes one with itself.",
    Code.NEIGHBOURS: "Atoms are about two relations of neighbours: of the subsampled Gaussian a "
    "record is added or removed, of all others it is replaced. Their epsilons do not add up.",
    Code.SESSION_HEADER: "The first record does not describe a session of this artifact, or shows "
    "what is no open parameter.",
    Code.SESSION_ID: "The identity of the session does not follow from its first record.",
    Code.SESSION_MONITORS: "The monitors are not those of the grammar.",
    Code.SESSION_KEY: "The key given with --key is not the one that the session commits to.",
    Code.SESSION_SEQ: "The number of a call is not the one that follows, or an outcome is of "
    "another call.",
    Code.SESSION_CALL: "The artifact has no call of this text.",
    Code.SESSION_OPEN: "An open argument is missing or not declared, or is shown where the first "
    "record does not say so.",
    Code.SESSION_VALUE: "A value that is shown is none of its parameter's type, or is outside its "
    "limits.",
    Code.SESSION_DIGEST: "A digest is not that of the value shown with it, or two values that are "
    "shown have one digest, or one value two.",
    Code.SESSION_STATES: "The states before a call are not those that its session may be in.",
    Code.SESSION_CALL_KEY: "The idempotency key of a call does not follow from the session's key.",
    Code.SESSION_REPEATED: "Two calls have one idempotency key or one reference.",
    Code.SESSION_OUTCOME: "An outcome has a field that does not go with it.",
    Code.SESSION_OBSERVED: "The observed values are not those that the tool gives, or are there "
    "where nothing was observed.",
    Code.SESSION_REFUSAL: "A refusal is of a tool that the grammar has not, or for a reason that "
    "none has.",
    Code.SESSION_RESOLVE: "An outcome was said later of a call whose outcome is known.",
    Code.SESSION_ACROSS: "What a call says that it drew of limits across sessions is not what it "
    "draws, or goes back behind what earlier calls said.",
    Code.SESSION_PLANS: "A call was made where, as far as is known, the plans may not have it.",
    Code.SESSION_MONITOR: "A call was made that a statement over open parameters forbids.",
    Code.SESSION_STATEMENT: "A call was made that a statement left to the run forbids.",
    Code.SESSION_PLACES: "A call was made after which more than 64 states may be held.",
    Code.SESSION_FINISH: "The session ended where, as far as is known, no plan may end.",
    Code.SESSION_BUDGET: "The budget of the session cannot be one: a weight, a margin or a delta "
    "is out of its range, the adapters are not those of the grammar's models, or there is a "
    "second one.",
    Code.SESSION_MODEL: "The call was not made by the model that the controller chooses, no model "
    "fits what is left, or a record says of a model what is not so.",
    Code.SESSION_AMOUNT: "What a call is expected to take, a sum, or the remainder of a cap is not "
    "what follows from the records before.",
    Code.SESSION_RESERVATION: "The reservation of the account is not the one that follows.",
    Code.SESSION_PARENT: "The ledger is not that of a session of this parent: its first record "
    "names another one or none, or the parent's own ledger does not hold.",
    Code.SESSION_DELEGATED: "The parent's ledger has not the call that the child's has at this "
    "line, or has it with other arguments or in another order; or it has one made for the child "
    "that the child's has not.",
    Code.SESSION_SETTLED: "The outcome of a call is one in the child's ledger and another in the "
    "parent's.",
    Code.PROOF_FORM: "A line of a proof is missing, has another member, or is no list of numbers "
    "as its place asks for.",
    Code.PROOF_QUESTION: "The question's text is no statement about the tools of its artifact.",
    Code.PROOF_CORE: "The proof is about another grammar: the digest of its core is not that of "
    "the artifact's.",
    Code.PROOF_ARTIFACTS: "A proof of `--implies` takes two artifacts, every other one.",
    Code.PROOF_START: "The start is not among the states of the list.",
    Code.PROOF_STEPS: "A state has another number of steps than there are calls to be tried there: "
    "a step was skipped, or one is too many.",
    Code.PROOF_TARGET: "A step does not lead to the state that it names: that state was left out, "
    "or it is another.",
    Code.PROOF_RENAMING: "A step does not rename every value that is remembered, each to one of "
    "its own.",
    Code.PROOF_ATOM: "A step renames a value to one of another atom: types tell them apart.",
    Code.PROOF_INTERVAL: "The interval of a sum is too small: a step leads out of it.",
    Code.PROOF_REFUSED: "A listed state has a call that the other side may refuse.",
    Code.PROOF_FINISH: "At a listed state the grammar may finish, and the other side may not.",
    Code.PROOF_USES: "The proof does not look at every key that the question asks about, or names "
    "a monitor that is not there.",
    Code.PROOF_SESSION: "The session of a proof has a call that the grammar does not let through.",
    Code.PROOF_SHOWS: "The session of a proof does not show what it is there to show.",
    Code.PROOF_END: "A listed state has no way to an end, or its step does not surely lead nearer.",
    Code.PROOF_STUCK: "A session could be finished at a state that is listed as one without end.",
    Code.UNKNOWN_TOOL: "The grammar has no tool of this name.",
    Code.UNDECLARED_ARGUMENT: "The tool has no parameter of this name, or it is one that is "
    "observed.",
    Code.MISSING_ARGUMENT: "An argument that is not optional is missing.",
    Code.UNLISTED_VALUE: "The value of a listed parameter is none of those that the grammar lists.",
    Code.OPEN_VALUE: "The value of an open parameter is of another type, too long or too short, "
    "out of its range, or does not match its pattern.",
    Code.NO_VALUE: "This is no JSON value that every program reads alike: NaN or infinite, a "
    "number that a double changes, half of a surrogate pair, too deeply nested.",
    Code.NOT_PLANNED: "No plan goes on with this call here; where an outcome is unknown, not from "
    "every state that the session may be in.",
    Code.MONITOR_FORBIDS: "A statement over open parameters forbids the call.",
    Code.STATEMENT_FORBIDS: "A statement that the automaton leaves to the run forbids the call.",
    Code.MAY_NOT_FINISH: "No plan ends here, or an unknown outcome leaves open whether one does.",
    Code.NO_MODEL: "No model that may make the call fits the remainder of the session's budget, or "
    "of its account.",
    Code.MANY_EARLIER: "The statement looks at the latest 64 calls of a key. None of them stands "
    "against the call, and an older one may.",
    Code.MANY_STATES: "So many outcomes are unknown that the session might be in more than 64 "
    "states. Resolve some of them first.",
    Code.ENDED: "The session has ended.",
    Code.ALREADY_DONE: "The ledger has a call of this identity: it is not made a second time.",
    Code.NESTED_CALL: "A call was asked for inside another one of the same thread or task.",
    Code.NOT_WRITTEN: "The ledger cannot be written, so nothing may be called.",
    Code.SERVER_AWAY: "The server that has this tool is missing, has ended, or lists other tools "
    "than it should. Nothing was called; it is tried again, and tools of other servers go on.",
    Code.MANY_WAITING: "So many calls wait for those that are under way that no other may wait.",
    Code.UNKNOWN_FEATURE: "The file needs a feature that this version does not know.",
    Code.UNKNOWN_VERSION: "The file is of a version that this version does not know.",
    Code.LIMIT: "The input asks for more than is handled: of size, of memory or of steps.",
    Code.PRECISION: "A rounding stayed open at the greatest precision.",
    Code.NO_RACE: "The artifact is for a gate and has no race counts: compile the grammar again "
    "without --for gate.",
    Code.INCOMPLETE: "The ledger ends before its last record: what is there is verified, and "
    "nothing is claimed. `tcc run --resume` goes on with it.",
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
    "R": "docs/spec/session.md, section 6",
    "D": "docs/spec/artifact.md and ledger.md",
}


def explain_code(text: str) -> str | None:
    """The page of a code as plain text; None where there is no such code."""
    found = next((known for known in Code if known.value == text), None)
    if found is None:
        return None
    verdict = "input is declined" if found.declines else "input is invalid"
    if text[0] == "R":
        verdict = "call is refused"
    return f"{text}: {title(found)}\n\n{TEXTS[found]}\n\nThe {verdict}; {_PAGES[text[0]]}."


def page_of(code: Code) -> str:
    """The page that a code is from, and the section of it."""
    return _PAGES[code.value[0]]


def title(code: StrEnum) -> str:
    """What is wrong, in a few words."""
    return code.name.lower().replace("_", " ")


DOCS = "TCC_DOCS_URL"


def text_of(code: str) -> str | None:
    """The page of a code as plain text; None where there is no such code."""
    return explain(code) or explain_code(code) or _of_pipeline(code)


def _of_pipeline(code: str) -> str | None:
    found = next((known for known in OF_PIPELINE if known.value == code), None)
    if found is None:
        return None
    return f"{code}: {title(found)}\n\n{OF_PIPELINE[found]}\n\nThe call failed; docs/pipeline.md."


def titles() -> dict[str, str]:
    """Every code with what is wrong, in a few words."""
    pages = {code: entry.title for code, entry in CATALOGUE.items()}
    return pages | {code.value: title(code) for code in (*Code, *OF_PIPELINE)}


def link_of(code: str) -> str:
    """Where the page of a code is, a URI."""
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
