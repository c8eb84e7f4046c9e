"""Settings of a run: the seed, the mode, the bound, the number of plans, and when to stop.

Text: docs/spec/race.md, sections 6 to 13.  A run depends only on its settings and its artifact.
:mod:`tcc_runtime.settings.modes` decides which combinations of the two are allowed.  The fields of
:class:`Settings` are the only table of these options (:mod:`tcc_runtime.settings.table`).  The
checks in this module, the options of the commands, their help, the keywords of the library, and the
members of a request are all read from this table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final, Literal, TypeAlias

from tcc_certs.errors import Code
from tcc_certs.formats.codec import parse_decimal
from tcc_certs.policy.atoms import Atom
from tcc_certs.privacy.spending import Taken
from tcc_certs.race.digest import opening_salt, seed_commitment
from tcc_certs.replay.amounts import AskRule, SpendingCaps
from tcc_runtime.settings.table import check_value, table_of

Mode: TypeAlias = Literal["exact", "surrogate", "fallback"]
Keys: TypeAlias = Literal["finalized", "anchored"]
Race: TypeAlias = Literal["coupled", "rest", "literal"]
Ask: TypeAlias = Literal["leaf", "node", "never"]
DEFAULT_DELTA: Final = "0.00001"
_NANO_PLACES = 9
_MOST_PASSED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one run.

    Attributes:
        mode: ``exact``, ``surrogate`` or ``fallback``; None is the best that the counts allow.
        top: how many plans to find, k >= 1.
        recipe: the bound, ``r1`` per-step envelope or ``r2`` monotone remainder.
        keys: ``finalized``: a child is pushed with its own arrival; ``anchored``: with the bound
            that its parent's arrival gives.  None is anchored with the literal race, else
            finalized.
        race: ``rest`` draws the children of a node one at a time, ``coupled`` draws an arrival for
            each child.  ``literal`` is the printed surrogate race, which certifies nothing.  None
            is coupled with anchored keys and in fallback mode, else rest.
        inflate: factor by which race counts are raised, an exact decimal >= 1.
        truncate: search only plans of at most that many calls, from the root of the run; None is
            all.
        tau: of the fallback's heuristic value, an exact decimal > 0.
        alpha, eta: of the potential Phi, exact decimals, alpha >= 0, 0 < eta <= 1.
        max_expansions: stop after this many expansions; None is no cap.
        max_seconds: stop after this many seconds; None is no cap.
        count_bits: use no race counts wider than that; 0 is no limit.
        ask: when to ask for costs that are ranges.  ``leaf`` asks for those of a plan before it
            counts.  ``node`` also asks once for the last call of a node before the node is
            expanded.  ``never`` does not ask.  None is leaf if a quoter is given, else never.
        price_cap, sla_ms: the most cents and milliseconds that asking may take; None is no cap.
        epsilon_cap: the most epsilon, an exact decimal of at most nine places; None is no cap.
        price_weight, latency_weight, epsilon_weight: weights of a cent, a millisecond and one
            epsilon in the choice of a model; exact decimals, the first two above 0.
        margin: Q: raise the predicted gain of a model by the upper quantile Q of its past errors.
            An exact decimal above 0 and below 1; None does not raise it.
        delta: the epsilon of atoms is stated at this delta and compared with `epsilon_cap`.  An
            exact decimal above 0 and below 1; None is 0.00001 if the run has atoms to count.
        raw_input_dependent: True if the raw input decided the grammar or the models.  The run
            reports that, claims nothing, and states nothing about privacy.
        atoms: the mechanisms that privatised the input before the run.
        seed: 32 bytes; the race is a function of these and of the artifact (and of `inflate`,
            `beacon` and `client_nonce`, if given).
        opening_salt: opens the seed commitment, 32 bytes; None derives it from the seed.
        beacon, client_nonce: public randomness and the client's, mixed into the race's key.
        after: calls that were already made; the run searches for the best continuations.

    Raises:
        SettingsError: a value is out of its range.
    """

    mode: Mode | None = field(
        default=None, metadata={"about": "search mode; by default the best that the counts allow"}
    )
    top: int = field(default=1, metadata={"about": "number of plans to find", "least": 1})
    recipe: Literal["r1", "r2"] = field(
        default="r2",
        metadata={"about": "how keys are bounded: r1 per-step envelope, r2 monotone remainder"},
    )
    keys: Keys | None = field(
        default=None,
        metadata={
            "about": "key of a child: from its own arrival, or from the "
            "bound that its parent's arrival gives"
        },
    )
    race: Race | None = field(
        default=None,
        metadata={
            "about": "rest draws the children of a node one at a time, coupled all of them; "
            "literal is the paper's printed surrogate race, which certifies nothing."
            " By default rest; coupled with anchored keys or in fallback"
        },
    )
    inflate: str = field(
        default="1",
        metadata={
            "about": "stress test: multiply the race count of each state by this decimal, from the "
            "last states up, and round it up to a whole number; a last state has the count 1 or "
            "little more, so a small factor is coarse",
            "least": 1,
        },
    )
    truncate: int | None = field(
        default=None,
        metadata={
            "about": "search only plans of at most this many calls; over a large grammar such "
            "a run may write gigabytes of ledger; --max-expansions bounds it",
            "least": 0,
        },
    )
    tau: str = field(
        default="1", metadata={"about": "tau of the fallback's value, a decimal", "above": 0}
    )
    alpha: str = field(
        default="0", metadata={"about": "alpha of the potential, a decimal", "least": 0}
    )
    eta: str = field(
        default="1", metadata={"about": "eta of the potential, a decimal", "above": 0, "most": 1}
    )
    max_expansions: int | None = field(
        default=None,
        metadata={"about": "stop after this many expansions, and report the gap", "least": 1},
    )
    max_seconds: float | None = field(
        default=None,
        metadata={"about": "stop after this many seconds, and report the gap", "least": 0.001},
    )
    count_bits: int = field(
        default=0,
        metadata={
            "about": "round race counts of more bits than this up, to bounds: mode surrogate, "
            "CountFail in the ledger; 0: never",
            "least": 0,
        },
    )
    ask: Ask | None = field(
        default=None,
        metadata={
            "about": "when to ask about costs that are ranges: leaf, before a plan counts; "
            "node, also before a node is expanded",
            "asking": True,
        },
    )
    price_cap: int | None = field(
        default=None,
        metadata={"about": "cap on what models may take, in cents", "least": 0, "asking": True},
    )
    sla_ms: int | None = field(
        default=None,
        metadata={
            "about": "cap on what models may take, in milliseconds",
            "least": 0,
            "asking": True,
        },
    )
    epsilon_cap: str | None = field(
        default=None,
        metadata={
            "about": "cap on what models may take, in epsilon; a decimal",
            "least": 0,
            "places": _NANO_PLACES,
            "asking": True,
        },
    )
    price_weight: str = field(
        default="1",
        metadata={
            "about": "weight of a cent against gain when a model is chosen",
            "above": 0,
            "asking": True,
        },
    )
    latency_weight: str = field(
        default="0.001",
        metadata={"about": "weight of a millisecond against gain", "above": 0, "asking": True},
    )
    epsilon_weight: str = field(
        default="1",
        metadata={"about": "weight of one epsilon against gain", "least": 0, "asking": True},
    )
    margin: str | None = field(
        default=None,
        metadata={
            "about": "raise each model's predicted gain by this quantile of its past errors",
            "metavar": "Q",
            "above": 0,
            "below": 1,
            "asking": True,
        },
    )
    delta: str | None = field(
        default=None,
        metadata={
            "about": "delta at which the epsilon of atoms is stated, a decimal; "
            f"by default {DEFAULT_DELTA} if there are atoms",
            "above": 0,
            "below": 1,
        },
    )
    raw_input_dependent: bool = field(
        default=False,
        metadata={
            "about": "say that the raw input decided the grammar or the models: "
            "the run claims nothing, and states nothing about privacy"
        },
    )
    atoms: tuple[Atom, ...] = ()
    seed: bytes = field(
        metadata={"about": "seed of the race; by default drawn at random", "least": 32, "most": 32}
    )
    opening_salt: bytes | None = field(
        default=None,
        metadata={
            "about": "salt of the seed's commitment; by default derived from the seed",
            "least": 32,
            "most": 32,
        },
    )
    beacon: bytes | None = field(
        default=None,
        metadata={"about": "public randomness, mixed into the race", "least": 1, "most": 1 << 16},
    )
    client_nonce: bytes | None = field(
        default=None,
        metadata={
            "about": "the client's randomness, mixed into the race",
            "least": 1,
            "most": 1 << 16,
            "short": "nonce",
        },
    )
    after: Sequence[str] = field(
        default=(),
        metadata={
            "about": "calls that were already made, separated by spaces: search for the best "
            "continuations",
            "metavar": "CALLS",
            "calls": True,
        },
    )

    def __post_init__(self) -> None:
        if not isinstance(self.after, str) and isinstance(self.after, Sequence):
            object.__setattr__(self, "after", tuple(self.after))
        for option in _EACH_TIME:
            check_value(option, getattr(self, option.name))
        # Many runs differ only in the seed, so the other values are checked once.
        options = options_in(self)
        try:
            passed = options in _PASSED
        except TypeError:  # an unhashable value, which no option may have
            passed = False
        if passed:
            return
        for option, value in zip(_OPTIONS, _checked_in(self), strict=True):
            check_value(option, value)
        if len(_PASSED) >= _MOST_PASSED:
            _PASSED.clear()
        _PASSED.add(options)

    @property
    def max_ms(self) -> int | None:
        """The time cap in whole milliseconds."""
        return None if self.max_seconds is None else max(1, round(self.max_seconds * 1000))

    @property
    def nano_epsilon_cap(self) -> int | None:
        """The cap on epsilon in nano-units."""
        if self.epsilon_cap is None:
            return None
        number, places = _decimal(self.epsilon_cap, "epsilon_cap")
        scale: int = 10 ** (_NANO_PLACES - places)
        return number * scale

    @property
    def spending_caps(self) -> SpendingCaps:
        """The caps on what questions and calls of models may take."""
        return SpendingCaps(
            price=self.price_cap, latency=self.sla_ms, epsilon=self.nano_epsilon_cap
        )

    def ask_rule(self, ask: Ask, taken: Taken | None) -> AskRule:
        """Return the rule that selects the model to ask: weights, caps, and the margin.

        Args:
            taken: the privacy account at the start; None if the run keeps none.
        """
        return AskRule(
            ask=ask,
            price_weight=_decimal(self.price_weight, "price_weight"),
            latency_weight=_decimal(self.latency_weight, "latency_weight"),
            epsilon_weight=_decimal(self.epsilon_weight, "epsilon_weight"),
            caps=self.spending_caps,
            taken=taken,
            margin=None if self.margin is None else _decimal(self.margin, "margin"),
        )

    @property
    def salt(self) -> bytes:
        """The salt that opens the seed commitment."""
        return opening_salt(self.seed) if self.opening_salt is None else self.opening_salt

    @property
    def commitment(self) -> bytes:
        """The commitment to the seed that a ledger opens with."""
        return seed_commitment(self.seed, self.salt)


TABLE: Final = table_of(Settings)
# Values that differ from run to run; and flags, because a set treats 1 and True as equal.
_EACH_TIME = tuple(option for option in TABLE if option.kind in (bytes, bool))
_OPTIONS = tuple(option for option in TABLE if option.kind is not bytes)
# All values except randomness: many runs have them in common.
options_in = attrgetter(*(option.name for option in _OPTIONS), "atoms")
_checked_in = attrgetter(*(option.name for option in _OPTIONS))
_PASSED: set[object] = set()


def _decimal(text: str, field: str) -> tuple[int, int]:
    return parse_decimal(text, field, Code.LEDGER_SCHEMA)
