"""The error class of the trusted kernel, its codes, and the escaping of text for people.

The first letter of a code names the input: ``B`` bytes and container, ``M`` manifest,
``C1``..``C9`` the certificates, ``G`` the core against the automaton, ``P`` a pin or exactness that
was required, ``L`` a ledger, ``S`` the ledger of a session, ``Q`` a book of quotes, ``A`` a
registry of adapters, ``K`` an account, ``E`` a file of atoms, ``T`` a proof of an exact question,
``R`` a call at a gate, ``D`` a decline.  A released code keeps its meaning for ever and is never
used for another one.

Text from a file could move the cursor, imitate a line of output, change the writing direction, or
be invisible.  So everything that is printed for people goes through :func:`escaped`, and everything
for programs through :func:`escaped_json`.  Names and versions must not contain such characters.
This module lists the characters itself, because Unicode tables differ between versions of Python.
Cost: linear in the text.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from enum import StrEnum

# Text for people: control characters and invisible characters are replaced by escapes.

# Controls (C0, DEL, C1), soft hyphen, marks and overrides of the writing direction, separators of
# lines and paragraphs, characters without a width, tags, and halves of surrogate pairs.
_HIDDEN = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff"
)
_ANY = re.compile(f"[{_HIDDEN}]")
_IN_JSON = re.compile(f"(?!\n)[{_HIDDEN}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def is_plain(text: str) -> bool:
    """Return whether `text` has no control or invisible characters."""
    return hidden_in(text) is None


def hidden_in(text: str) -> str | None:
    """The first control or invisible character of `text`; None if `text` has no such character."""
    found = _ANY.search(text)
    return None if found is None else found[0]


def escaped(text: str) -> str:
    """`text` on one line, with control and invisible characters written as escapes."""
    return _ANY.sub(_escape, text)


def escaped_json(document: str) -> str:
    """An equivalent JSON text with control and invisible characters escaped as in JSON.

    Args:
        document: JSON; line feeds between its parts are kept.
    """
    plain = document.replace("\n", "").isprintable()  # takes a twentieth of the time of the search
    return document if plain else _IN_JSON.sub(_escape_in_json, document)


def trace_lines(error: BaseException) -> Iterator[str]:
    """The lines of a traceback, with the first error first; each error takes one line."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from trace_lines(before)
        yield "and then:"
    for frame in traceback.format_tb(error.__traceback__):
        yield from frame.rstrip("\n").split("\n")
    yield escaped(f"{type(error).__name__}: {error}")


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in _SHORT:
        return _SHORT[char]
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escape_in_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


# Codes, and the error.


class Code(StrEnum):
    """All reasons for which the kernel refuses or declines an input."""

    # B: canonical JSON and the container.
    JSON_SYNTAX = "B101"
    JSON_NOT_CANONICAL = "B102"
    JSON_VALUE = "B103"
    HEADER_LENGTH = "B201"
    HEADER_SCHEMA = "B202"
    HEADER_NOT_CANONICAL = "B203"
    TENSOR_LAYOUT = "B204"
    DATA_LENGTH = "B205"

    # M: manifest and columns.
    MANIFEST_SCHEMA = "M101"
    MANIFEST_VALUE = "M102"
    COLUMN_SET = "M201"
    COLUMN_SHAPE = "M202"
    COLUMN_DIGEST = "M203"
    CALL_TABLE = "M301"
    CALL_WEIGHT = "M302"
    TOOL_TABLE = "M303"

    # C: C1 partition, C2 finiteness, C3 plans, C4 race counts, C5 bounds, C6 minimal, C7 leaf ids,
    # C8 source, C9 strict.
    EDGE_RANGE = "C101"
    EDGE_ORDER = "C102"
    ACCEPT_VALUE = "C103"
    EDGE_START = "C104"
    TARGET_ORDER = "C201"
    RANK = "C202"
    TARGET_NUMBER = "C203"
    CALLS_TO_GO = "C204"
    PLAN_COUNT = "C301"
    PLAN_WIDTH = "C302"
    RACE_COUNT = "C401"
    RACE_WIDTH = "C402"
    COST_TO_GO = "C501"
    RESIDUAL_TO_GO = "C502"
    COST_MAX = "C503"
    BOUND_RANGE = "C504"
    STATE_DIGEST = "C601"
    STATE_ORDER = "C602"
    UNREACHABLE = "C603"
    DEAD_STATE = "C604"
    UNUSED_CALL = "C605"
    SPLIT_FORM = "C606"
    SPLIT = "C607"
    LEAF_POLICY = "C701"
    ROOT_CONTEXT = "C702"
    CORE_SCHEMA = "C801"
    CORE_MISMATCH = "C802"
    RELAXED = "C803"
    STRICT_ANSWER = "C901"
    STRICT_FEATURE = "C902"

    # G: the automaton against its core, and the core against its source.
    CORE_ACCEPT = "G101"
    CORE_NEXT_CALL = "G102"
    CORE_DERIVATIVES = "G103"
    CORE_SOURCE = "G201"

    # P: the digest differs from the pin.
    PIN = "P101"

    # P: an exact artifact was required, but something is relaxed.
    NOT_EXACT = "P102"

    # L: ledgers.
    LEDGER_LINE = "L101"
    LEDGER_CHAIN = "L102"
    LEDGER_SCHEMA = "L103"
    LEDGER_ORDER = "L104"
    LEDGER_HEADER = "L201"
    LEDGER_ARTIFACT = "L202"
    RUN_ID = "L203"
    SEED = "L301"
    OPENING = "L302"
    OPENING_DIGEST = "L303"
    BEACON = "L304"
    NONCE = "L305"
    CONTEXT_DIGEST = "L401"
    NODE_FIELD = "L402"
    UNIFORM = "L501"
    WINNER = "L502"
    ARRIVAL = "L503"
    KEY = "L504"
    VALUE = "L505"
    POP_ORDER = "L601"
    MISSING_CHILD = "L602"
    REPEATED_CONTEXT = "L603"
    GUARD = "L604"
    POTENTIAL = "L605"
    INCUMBENT = "L606"
    STOP_RULE = "L607"
    COVERAGE = "L608"
    CLAIM = "L609"
    CLOSE_FIELD = "L610"
    TAIL = "L611"
    REQUEUE = "L701"
    ASK = "L702"
    ANSWER = "L703"
    SPENT = "L704"
    RDP_EPSILON = "L705"
    RDP_ORDER = "L706"
    EPS_DELTA = "L707"
    ATOM_TAKEN = "L708"
    RESERVATION = "L709"
    MARGIN = "L710"

    # Q: a book of quotes.
    QUOTES = "Q101"
    QUOTED_TWICE = "Q102"
    QUOTED_UNKNOWN = "Q103"

    # A: the registry of adapters, and the folders that it names.
    ADAPTER_REGISTRY = "A101"
    ADAPTER_UNKNOWN = "A102"
    ADAPTER_MISSING = "A103"
    ADAPTER_FORM = "A104"
    ADAPTER_INCONSISTENT = "A105"
    ADAPTER_ALTERED = "A106"
    ADAPTER_TRAINING = "A107"
    ADAPTER_LEDGER = "A201"

    # K: accounts that several runs share.
    ACCOUNT_FORM = "K101"
    ACCOUNT_VERSION = "K102"
    ACCOUNT_CLOSED = "K103"
    ACCOUNT_LOCKED = "K104"
    ACCOUNT_CAPS = "K105"
    ACCOUNT_LEASE = "K106"
    ACCOUNT_LEDGER = "K201"

    # E: files of atoms.
    ATOMS = "E101"
    ATOM_VALUE = "E102"
    MANY_ATOMS = "E103"
    NEIGHBOURS = "E104"

    # S: ledgers of sessions.
    SESSION_HEADER = "S101"
    SESSION_ID = "S102"
    SESSION_STATEMENTS = "S103"
    SESSION_KEY = "S104"
    SESSION_SEQ = "S201"
    SESSION_CALL = "S202"
    SESSION_OPEN = "S203"
    SESSION_VALUE = "S204"
    SESSION_DIGEST = "S205"
    SESSION_STATES = "S206"
    SESSION_CALL_KEY = "S207"
    SESSION_REPEATED = "S208"
    SESSION_OUTCOME = "S209"
    SESSION_OBSERVED = "S210"
    SESSION_REFUSAL = "S211"
    SESSION_RESOLVE = "S212"
    SESSION_ACROSS = "S213"
    SESSION_ASK = "S214"
    SESSION_APPROVAL = "S215"
    SESSION_APPROVALS = "S216"
    SESSION_CONTINUES = "S217"
    SESSION_CARRIED = "S218"
    SESSION_PLANS = "S301"
    SESSION_STATEMENT = "S302"
    SESSION_POSITIONS = "S304"
    SESSION_FINISH = "S305"
    SESSION_BUDGET = "S401"
    SESSION_MODEL = "S402"
    SESSION_AMOUNT = "S403"
    SESSION_RESERVATION = "S404"
    SESSION_PARENT = "S501"
    SESSION_DELEGATED = "S502"
    SESSION_SETTLED = "S503"

    # R: refusals of a call, an end or a value by a gate.
    UNKNOWN_TOOL = "R101"
    UNDECLARED_ARGUMENT = "R102"
    MISSING_ARGUMENT = "R103"
    UNLISTED_VALUE = "R104"
    OPEN_VALUE = "R105"
    NO_VALUE = "R106"
    NOT_PLANNED = "R201"
    STATEMENT_REFUSES = "R202"
    TOTAL_EXCEEDED = "R203"
    MAY_NOT_FINISH = "R204"
    NO_MODEL = "R205"
    EVALUATION_CUT = "R207"
    OVERDUE = "R208"
    DENIED = "R209"
    CLOCK_BEHIND = "R210"
    PENDING = "R211"
    MANY_STATES = "R301"
    ENDED = "R303"
    ALREADY_DONE = "R304"
    NESTED_CALL = "R305"
    NOT_WRITTEN = "R306"
    SERVER_AWAY = "R307"
    MANY_WAITING = "R308"
    MANY_QUESTIONS = "R309"

    # T: proofs of exact questions.
    PROOF_SCHEMA = "T101"
    PROOF_QUESTION = "T102"
    PROOF_CORE = "T103"
    PROOF_ARGUMENT = "T104"
    PROOF_STEP = "T105"

    # D: declined, neither valid nor invalid.
    UNKNOWN_FEATURE = "D101"
    UNKNOWN_VERSION = "D102"
    LIMIT = "D201"
    PRECISION = "D202"
    NO_RACE = "D203"
    ENDLESS = "D204"
    INCOMPLETE = "D301"
    WITHHELD = "D302"

    @property
    def declines(self) -> bool:
        """True if the verdict is 2 (declined or incomplete); False if it is 1 (invalid)."""
        return self.value.startswith("D")


class Rejected(Exception):
    """A refused input: the rule that failed, the place, the expected value and the value found.

    Args:
        code: the rule that failed.
        path: the place, such as ``race_count[17]`` or ``line 4: key_raw``, or a JSON pointer.
        expected: the value that the rule requires, in a form for people.
        found: the value in the input, in a form for people; `mismatch` has both.
    """

    def __init__(self, code: Code, path: str, expected: object, found: object) -> None:
        self.code = code
        self.path = escaped(path)
        self.expected = clip(expected)
        self.found = clip(found)
        self.mismatch = f"expected {self.expected}, found {self.found}"
        place = f" at {self.path}" if self.path else ""  # the empty pointer is the whole document
        super().__init__(f"{code.value}{place}: {self.mismatch}")

    def __reduce__(self) -> tuple[type[Rejected], tuple[Code, str, str, str]]:
        return Rejected, (self.code, self.path, self.expected, self.found)


def clip(value: object, width: int = 200) -> str:
    """``str(value)`` for a message: on one line, and shortened in the middle above `width`."""
    # A huge integer is described by its size: its decimal text could take minutes to compute.
    if isinstance(value, int) and value.bit_length() > 4096:
        return f"an integer of {value.bit_length()} bits"
    # The value comes from an untrusted file, so special characters are escaped.
    try:
        text = escaped(str(value))
    except RecursionError:
        text = f"a {type(value).__name__} that is nested deeply"
    return text if len(text) <= width else f"{text[: width - 40]} ... {text[-32:]}"


def require(expected: object, found: object, code: Code, path: str) -> None:
    """Refuse with `code` at `path` unless `found` equals `expected`.

    Raises:
        Rejected: the two differ.
    """
    if found != expected:
        raise Rejected(code, path, expected, found)


def ensure(holds: bool, code: Code, path: str, expected: object, found: object) -> None:
    """Refuse with `code` at `path` unless `holds`.

    Raises:
        Rejected: `holds` is false.
    """
    if not holds:
        raise Rejected(code, path, expected, found)
