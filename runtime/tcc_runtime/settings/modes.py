"""Terms of a run: mode, race, claim and race key, from an artifact and settings.

Text: docs/spec/race.md, sections 11 and 16.  This module rejects all combinations that are not
allowed.  The key of the race comes from the seed, and from a beacon or nonce if given.  The owner
of a run can fix seed, salt and settings, publish their digest O, and get the beacon or nonce later.
Then the race cannot have been selected.  Cost: a few hashes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import require_race_counts
from tcc_certs.formats.codec import Json, blake, encode, format_decimal
from tcc_certs.policy.atoms import Atom, Exact
from tcc_certs.policy.plans import Model
from tcc_certs.privacy.accountant import total_of
from tcc_certs.privacy.spending import Taken, account, exact_delta
from tcc_certs.race.digest import race_key
from tcc_certs.replay.amounts import AskRule, cap_fields
from tcc_runtime.account.amounts import Caps
from tcc_runtime.adapters.adapter import Adapter, adapters_of
from tcc_runtime.artifact import counts, cuts
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.root import Root, read_calls, root_of
from tcc_runtime.errors import SettingsError
from tcc_runtime.settings.settings import DEFAULT_DELTA, Ask, Keys, Mode, Race, Settings

MOST_WRITTEN: Final = 1400 * 1024 * 1024  # a run with this much was measured to take 1.5 GB


class Claim(StrEnum):
    """The claim of a run about its result."""

    EXACT = "RunWiseExact"
    SURROGATE = "RunWiseSurrogate"
    TRUNCATION = "TruncationOnly"
    NONE = "NoCert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The complete settings of one run over one artifact.

    Attributes:
        settings: as given.
        root: the root of the run.
        mode, race, keys: with defaults filled in.
        truncate: K, at most the rank of the root.
        rounded: the bits that counts are rounded up to, because they are wider than the run may
            use.  The run is then in surrogate mode from its root.  None: counts are not rounded.
        cut: whether K is less than the rank of the root.
        claim: the claim after a certified stop; ``NoCert`` if no stop certifies.
        ask: when the run asks for costs; None if no cost is a range.
        adapters: of the models that may be asked, in order of their names.
        taken: the privacy account at the start; None if the run keeps none.
        account: identity and caps of the account that pays; None without one.
    """

    settings: Settings
    root: Root
    mode: Mode
    race: Race
    keys: Keys
    truncate: int
    cut: bool
    claim: Claim
    ask: Ask | None
    adapters: tuple[Adapter, ...] = ()
    taken: Taken | None = None
    account: tuple[str, Caps] | None = None
    rounded: int | None = None

    @property
    def ask_rule(self) -> AskRule | None:
        """The rule that selects a model to ask; None if all costs are points."""
        return None if self.ask is None else self.settings.ask_rule(self.ask, self.taken)


def lowered(claim: Claim) -> Claim:
    """Return the claim of a run whose counts became bounds before the first draw."""
    return Claim.SURROGATE if claim is Claim.EXACT else claim


def terms_of(
    artifact: Artifact,
    settings: Settings,
    *,
    quoted: bool = True,
    registry: Iterable[Adapter] | None = None,
    account: tuple[str, Caps] | None = None,
) -> Terms:
    """Fill in defaults, and reject settings that the artifact does not allow.

    Args:
        quoted: whether a quoter is given.
        registry: the known adapters; None: adapters are not checked.
        account: identity and caps of the account that pays.

    Raises:
        AfterRefused: no plan begins with `after`.
        CallTextError: a text in `after` is no call.
        SettingsError: the artifact does not allow a setting, or two settings exclude each other.
            Mode ``exact`` requires exact counts and no `inflate`.  Race ``literal`` excludes other
            modes, other keys and a tilt.  Race ``rest`` excludes anchored keys.  Fallback mode
            excludes ``rest``, `inflate`, `truncate` and ``anchored``.  A cut is rejected if its
            tail takes too many steps.  Caps and ways of asking require ranges and a quoter.  Atoms
            and a delta require a run that counts them.
        Rejected: A102 the registry lacks an adapter of a model that may be asked; D201 the counts
            are too great to be written out; D203 the artifact is for a gate.  An unverified
            artifact leads out of its ranges.
    """
    if settings.after:
        settings = replace(settings, after=read_calls(artifact.core, settings.after))
    _require_writable(artifact, settings)
    literal = settings.race == "literal"
    exact = artifact.manifest.counts == "exact" and settings.inflate == "1"
    mode: Mode = settings.mode or ("exact" if exact and not literal else "surrogate")
    keys: Keys = settings.keys or ("anchored" if literal else "finalized")
    if mode == "exact" and not exact:
        raise SettingsError("mode", "surrogate or fallback, as counts are bounds", mode)
    root = root_of(artifact, settings.after)
    longest = root.rank
    truncate = longest if settings.truncate is None else min(settings.truncate, longest)
    race: Race = settings.race or (
        "rest" if mode != "fallback" and keys == "finalized" else "coupled"
    )
    if literal:
        _require_literal(artifact, mode, keys, settings.truncate)
    if race == "rest" and keys != "finalized":
        raise SettingsError("keys", "finalized with the rest race", keys)
    if mode == "fallback":
        _require_no_race(settings)
    if truncate < longest:
        _require_weighable(artifact, truncate, root)
    bits = None
    if mode != "fallback":
        bits = counts.rounded_to(artifact, settings.inflate, settings.count_bits, root.members)
        if bits is not None:
            _require_writable(artifact, settings, bits)
    ask = _ask(artifact, settings, quoted)
    asked = registry is not None and ask not in (None, "never")
    return Terms(
        settings=settings,
        root=root,
        mode=mode,
        race=race,
        keys=keys,
        truncate=truncate,
        cut=truncate < longest,
        claim=_claim(artifact, settings, mode, truncate < longest),
        ask=ask,
        adapters=adapters_of(artifact.core, registry) if asked and registry is not None else (),
        taken=_taken(artifact, settings),
        account=_account(ask, account),
        rounded=bits,
    )


def _account(ask: Ask | None, account: tuple[str, Caps] | None) -> tuple[str, Caps] | None:
    if account is not None and ask in (None, "never"):
        raise SettingsError("account", "none, as nobody is asked", account[0])
    return account


def _taken(artifact: Artifact, settings: Settings) -> Taken | None:
    """Return the privacy account, or None if the run cannot take atoms."""
    if settings.atoms and settings.raw_input_dependent:
        what = "none, as a run that depends on raw input states nothing of privacy"
        raise SettingsError("atoms", what, f"{len(settings.atoms)} atoms")
    delta = settings.delta
    if artifact.fixed_costs and not settings.atoms:
        if delta is not None:
            raise SettingsError("delta", "none, as there are no atoms to count", delta)
        return None
    carried = any(model.atom for tool in artifact.core.tools for model in tool.models)
    if delta is None and not settings.atoms and not carried:
        return None
    check_neighbours(settings.atoms, [m for tool in artifact.core.tools for m in tool.models])
    exact = exact_delta(delta or DEFAULT_DELTA)
    says = not settings.raw_input_dependent
    return account(exact, settings.atoms, says)


def check_neighbours(atoms: Iterable[Atom], models: Iterable[Model]) -> None:
    """Check that all atoms, also of models, are about the same neighbours.

    Raises:
        Rejected: E103, E104 the neighbours differ, or there are too many different atoms.
    """
    taken = Taken(delta=Exact(1, 1), total=total_of(atoms))
    for model in models:
        taken = taken.plus(model.epsilon, model.atom)


def _ask(artifact: Artifact, settings: Settings, quoted: bool) -> Ask | None:
    asking = settings.ask not in (None, "never")
    if artifact.fixed_costs:
        if asking:
            raise SettingsError("ask", "nothing, as no cost is a range", settings.ask)
        for name in cap_fields(settings.spending_caps):
            raise SettingsError(name, "no cap, as no cost is a range", getattr(settings, name))
        if settings.margin is not None:
            raise SettingsError("margin", "none, as no cost is a range", settings.margin)
        return None
    if asking and not quoted:
        raise SettingsError("ask", "never, as no quoter is given", settings.ask)
    return (settings.ask or "leaf") if quoted else "never"


def _claim(artifact: Artifact, settings: Settings, mode: Mode, cut: bool) -> Claim:
    literal = settings.race == "literal"
    if literal or mode == "fallback" or not artifact.verified or settings.raw_input_dependent:
        return Claim.NONE
    if cut:
        return Claim.TRUNCATION
    return Claim.EXACT if mode == "exact" else Claim.SURROGATE


def _require_literal(artifact: Artifact, mode: Mode, keys: Keys, truncate: int | None) -> None:
    if mode != "surrogate":
        raise SettingsError("mode", "surrogate with the literal race", mode)
    if keys != "anchored":
        raise SettingsError("keys", "anchored with the literal race", keys)
    if artifact.manifest.tilt != 0:
        raise SettingsError("race", "coupled, as the artifact has a tilt", "literal")
    if truncate is not None:
        raise SettingsError("truncate", "no cut with the literal race", truncate)


def _require_writable(artifact: Artifact, settings: Settings, bits: int | None = None) -> None:
    require_race_counts(artifact.manifest)
    written = counts.written_bytes(artifact, settings.inflate, bits)
    if written > MOST_WRITTEN:
        expected = (
            f"race counts of at most {MOST_WRITTEN} bytes when a run writes them out: compile "
        )
        expected += "with a coarser --tilt, or with fewer calls in a plan (`limit depth`)"
        raise Rejected(Code.LIMIT, "race_exponent", expected, f"{written} bytes")


def _require_weighable(artifact: Artifact, truncate: int, root: Root) -> None:
    cut = cuts.cut_of(artifact, truncate, root.members)
    if not cut.fits:
        expected = (
            f"no cut, or one nearer to 0 or {root.rank}, as its tail takes over {cut.allowed} steps"
        )
        raise SettingsError("truncate", expected, f"{truncate}, which takes {cut.steps}")


def _require_no_race(settings: Settings) -> None:
    if settings.race == "rest":
        raise SettingsError("race", "coupled in fallback mode", settings.race)
    if settings.keys == "anchored":
        raise SettingsError("keys", "finalized in fallback mode", settings.keys)
    if settings.inflate != "1":
        raise SettingsError("inflate", "1 in fallback mode", settings.inflate)
    if settings.truncate is not None:
        raise SettingsError("truncate", "no cut in fallback mode", settings.truncate)


# Race key.


def opening_digest(artifact: Artifact, settings: Settings) -> bytes:
    """Return O, the digest that is published before the beacon and the nonce are known.

    Raises:
        SettingsError: as a run with these settings.
    """
    return _digest(artifact, terms_of(artifact, settings))


def race_key_of(artifact: Artifact, terms: Terms) -> bytes:
    """K, the PRF key of the run."""
    settings = terms.settings
    root = terms.root.digest
    if settings.beacon is None and settings.client_nonce is None:
        return race_key(settings.seed, root)
    parts = [settings.beacon or b"", settings.client_nonce or b""]
    public = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    salt = blake(b"tcc.salt.v1\x00" + root + _digest(artifact, terms) + public)
    return race_key(settings.seed, salt)


def _digest(artifact: Artifact, terms: Terms) -> bytes:
    settings = terms.settings
    document: dict[str, Json] = {
        "artifact": artifact.digest.hex(),
        "beta": format_decimal(*artifact.manifest.beta),
        "inflate": settings.inflate,
        "keys": terms.keys,
        "mode": terms.mode,
        "race": terms.race,
        "recipe": settings.recipe,
        "seed_commitment": settings.commitment.hex(),
        "tau": settings.tau,
        "tilt": artifact.manifest.tilt,
        "top": settings.top,
        "truncate": terms.truncate,
    }
    if terms.rounded is not None:
        document["count_bits"] = settings.count_bits
    if settings.after:
        document["after"] = list(settings.after)
    return blake(b"tcc.open.v1\x00" + encode(document))
