"""What a run may be told: the seed, the mode, the bound, how many plans, and where to stop.

Text: docs/spec/race.md, sections 6 to 13.  Everything else a run depends on is in the artifact;
what the two together allow is for :mod:`tcc_runtime.terms.modes`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Literal, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.decimals import parse_decimal
from tcc_certs.race.digest import opening_salt, seed_commitment
from tcc_runtime.errors import SettingsError

Mode: TypeAlias = Literal["exact", "surrogate", "fallback"]
Keys: TypeAlias = Literal["finalized", "anchored"]
Race: TypeAlias = Literal["coupled", "rest", "literal"]
Ask: TypeAlias = Literal["leaf", "node", "never"]
_NANO_PLACES = 9
_MAX_SIZE = 1 << 53
_MAX_PUBLIC = 1 << 16
_MOST_PASSED = 64
_PUBLIC_AND_SEED = ("seed", "opening_salt", "beacon", "client_nonce")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one run.

    Attributes:
        seed: 32 bytes; the race is a function of these and of the artifact (and of `inflate`,
            `beacon` and `client_nonce`, where given).
        mode: ``exact``, ``surrogate`` or ``fallback``; None is the best that the counts allow.
        race: ``rest``: the children of a node are drawn one at a time; ``coupled``: each has an
            arrival of its own; ``literal``: the printed surrogate race, which certifies nothing.
            None is rest, where it is known: not with anchored keys and not in fallback.
        keys: ``finalized``: a child is pushed with its own arrival; ``anchored``: with what its
            parent's arrival bounds.  None is finalized, with the literal race anchored.
        recipe: the bound, ``r1`` per-step envelope or ``r2`` monotone remainder.
        top: how many plans to find, k >= 1.
        inflate: race counts are made this many times as great, an exact decimal >= 1.
        truncate: look at plans of at most that many calls, from the root of the run; None is all.
        after: calls that were made already, canonical texts: the run looks for the best ways on.
        tau: of the fallback's heuristic value, an exact decimal > 0.
        max_expansions: stop before one more than that; None is no cap.
        max_seconds: stop once they have passed; None is no cap.
        count_bits: use no race counts wider than that; 0 is no limit.
        alpha, eta: of the potential Phi, exact decimals, alpha >= 0, 0 < eta <= 1.
        opening_salt: opens the seed commitment, 32 bytes; None derives it from the seed.
        beacon, client_nonce: public randomness and the client's, mixed into the race's key.
        ask: where costs are ranges, ``leaf`` asks for those of a plan before it counts, ``node``
            also once for the call that leads to a node before it is expanded, ``never`` not at all.
            None is leaf where there is somebody to ask.
        price_cap, sla_ms: the most cents and milliseconds that asking may take; None is no cap.
        epsilon_cap: the most epsilon, an exact decimal of at most nine places; None is no cap.
        price_weight, latency_weight, epsilon_weight: what a cent, a millisecond and one epsilon
            weigh against each other in the choice of a model; exact decimals, the first two above
            0.

    Raises:
        SettingsError: one of them is out of its range.
    """

    seed: bytes
    mode: Mode | None = None
    race: Race | None = None
    keys: Keys | None = None
    recipe: Literal["r1", "r2"] = "r2"
    top: int = 1
    inflate: str = "1"
    truncate: int | None = None
    tau: str = "1"
    max_expansions: int | None = None
    max_seconds: float | None = None
    count_bits: int = 0
    alpha: str = "0"
    eta: str = "1"
    opening_salt: bytes | None = None
    beacon: bytes | None = None
    client_nonce: bytes | None = None
    ask: Ask | None = None
    price_cap: int | None = None
    sla_ms: int | None = None
    epsilon_cap: str | None = None
    price_weight: str = "1"
    latency_weight: str = "0.001"
    epsilon_weight: str = "1"
    after: list[str] | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_after()
        self._check_bytes()
        # Of many runs all but the seed is often the same, and is looked at once.
        options = _OPTIONS(self)
        try:
            passed = options in _PASSED
        except TypeError:  # of something unhashable: no option is
            passed = False
        if passed:
            return
        self._check_names()
        self._check_sizes()
        self._check_decimals()
        if len(_PASSED) >= _MOST_PASSED:
            _PASSED.clear()
        _PASSED.add(options)

    def _check_bytes(self) -> None:
        if len(self.seed) != 32:
            raise SettingsError("seed", "32 bytes", f"{len(self.seed)} bytes")
        salt = self.opening_salt
        _hold(salt is None or len(salt) == 32, "opening_salt", "32 bytes", len(salt or b""))
        for name, value in (("beacon", self.beacon), ("client_nonce", self.client_nonce)):
            if value is not None and not 1 <= len(value) <= _MAX_PUBLIC:
                raise SettingsError(name, f"1 to {_MAX_PUBLIC} bytes", len(value))

    def _check_after(self) -> None:
        texts = not isinstance(self.after, str) and all(isinstance(c, str) for c in self.after)
        _hold(texts, "after", "a list of calls", self.after)
        object.__setattr__(self, "after", tuple(self.after))

    def _check_names(self) -> None:
        _one_of("mode", self.mode, (None, "exact", "surrogate", "fallback"))
        _one_of("race", self.race, (None, "coupled", "rest", "literal"))
        _one_of("keys", self.keys, (None, "finalized", "anchored"))
        _one_of("recipe", self.recipe, ("r1", "r2"))
        _one_of("ask", self.ask, (None, "leaf", "node", "never"))

    def _check_sizes(self) -> None:
        _hold(1 <= self.top < _MAX_SIZE, "top", "1 or more", self.top)
        cut = self.truncate
        _hold(cut is None or 0 <= cut < _MAX_SIZE, "truncate", "0 or more", cut)
        cap = self.max_expansions
        _hold(cap is None or 1 <= cap < _MAX_SIZE, "max_expansions", "1 or more", cap)
        seconds = self.max_seconds
        legal = seconds is None or 0.001 <= seconds <= 1e12  # an integer may be beyond all floats
        _hold(legal, "max_seconds", "0.001 or more", seconds)
        for name in ("price_cap", "sla_ms"):
            most = getattr(self, name)
            _hold(most is None or 0 <= most < _MAX_SIZE, name, "0 or more", most)
        _hold(0 <= self.count_bits < _MAX_SIZE, "count_bits", "0 or more", self.count_bits)

    def _check_decimals(self) -> None:
        inflate, places = _decimal("inflate", self.inflate)
        _hold(inflate >= 10**places, "inflate", "1 or more", self.inflate)
        _hold(_decimal("tau", self.tau)[0] > 0, "tau", "above 0", self.tau)
        _hold(_decimal("alpha", self.alpha)[0] >= 0, "alpha", "0 or more", self.alpha)
        eta, places = _decimal("eta", self.eta)
        _hold(0 < eta <= 10**places, "eta", "above 0, at most 1", self.eta)
        for name in ("price_weight", "latency_weight"):
            _hold(_decimal(name, getattr(self, name))[0] > 0, name, "above 0", getattr(self, name))
        epsilon = _decimal("epsilon_weight", self.epsilon_weight)[0]
        _hold(epsilon >= 0, "epsilon_weight", "0 or more", self.epsilon_weight)
        if self.epsilon_cap is not None:
            number, places = _decimal("epsilon_cap", self.epsilon_cap)
            legal = number >= 0 and places <= _NANO_PLACES
            _hold(legal, "epsilon_cap", "0 or more, with at most 9 places", self.epsilon_cap)

    @property
    def max_ms(self) -> int | None:
        """The time cap in whole milliseconds."""
        return None if self.max_seconds is None else max(1, round(self.max_seconds * 1000))

    @property
    def nano_epsilon_cap(self) -> int | None:
        """The cap on epsilon in nano-units."""
        if self.epsilon_cap is None:
            return None
        number, places = _decimal("epsilon_cap", self.epsilon_cap)
        scale: int = 10 ** (_NANO_PLACES - places)
        return number * scale

    @property
    def capped_asking(self) -> tuple[str, ...]:
        """The names of the caps on asking that are set."""
        names = ("price_cap", "sla_ms", "epsilon_cap")
        return tuple(name for name in names if getattr(self, name) is not None)

    @property
    def salt(self) -> bytes:
        """What opens the seed commitment."""
        return opening_salt(self.seed) if self.opening_salt is None else self.opening_salt

    @property
    def commitment(self) -> bytes:
        """The commitment to the seed that a ledger opens with."""
        return seed_commitment(self.seed, self.salt)


_OPTIONS = attrgetter(
    *(field.name for field in fields(Settings) if field.name not in _PUBLIC_AND_SEED)
)
_PASSED: set[object] = set()


def _hold(holds: bool, field: str, expected: str, found: object) -> None:
    if not holds:
        raise SettingsError(field, expected, found)


def _one_of(field: str, found: str | None, names: tuple[str | None, ...]) -> None:
    _hold(found in names, field, " or ".join(name for name in names if name), found)


def _decimal(field: str, text: str) -> tuple[int, int]:
    try:
        return parse_decimal(text, field, Code.LEDGER_SCHEMA)
    except Rejected:
        raise SettingsError(field, "an exact decimal, such as 0.25", text) from None
