"""Atoms: descriptions of privacy mechanisms, and a strict reader of them.

Normative text: docs/spec/privacy.md, section 1.  An atom names a mechanism and its parameters.  It
states no epsilon, because a reader would have to trust it; :mod:`tcc_certs.privacy` computes the
epsilon.  Cost: linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json, format_decimal
from tcc_certs.formats.schema import as_object

MAX_TIMES = 10**9
MAX_CHOICES = 10**18
MAX_POINTS = 1000
DIGITS = 18  # most digits on each side of the decimal point
_NUMBER = re.compile(r"(-?)0*([0-9]{1,80}?)(?:\.([0-9]{1,80}?)0*)?")
_COUNT = re.compile(r"-?(0|[1-9][0-9]{0,18})")


class Exact(NamedTuple):
    """An exact decimal, 0 or more: ``numerator / 10**places``, in lowest terms."""

    numerator: int
    places: int

    @property
    def text(self) -> str:
        """The canonical text."""
        return format_decimal(self.numerator, self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Answers truthfully with `probability`, else with any other of `choices` values, uniformly.

    `times` is the number of repetitions, here and in the other mechanisms.
    """

    probability: Exact
    choices: int
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian:
    """Adds normal noise of standard deviation `sigma` to a number of the given `sensitivity`."""

    sigma: Exact
    sensitivity: Exact
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace:
    """Adds Laplace noise of the given `scale` to a number of the given `sensitivity`."""

    scale: Exact
    sensitivity: Exact
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Adds integer noise to an integer; y has a weight of ``e^(-y^2 / (2 sigma^2))``."""

    sigma: Exact
    sensitivity: Exact
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsampledGaussian:
    """Gaussian noise on a sum over records, each sampled with probability `rate`.

    Neighbouring data sets differ by adding or removing one record.
    """

    rate: Exact
    sigma: Exact
    sensitivity: Exact
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """A curve given by some of its points (alpha, epsilon).

    Its author asserts it without a mechanism.
    """

    points: tuple[tuple[Exact, Exact], ...]
    times: int = 1


Atom: TypeAlias = (
    RandomizedResponse | Gaussian | Laplace | DiscreteGaussian | SubsampledGaussian | Points
)


class Codes(NamedTuple):
    """The codes with which a reader refuses: a malformed atom, and a number out of range."""

    form: Code
    value: Code


def read_atom(value: Json, path: str, codes: Codes) -> Atom:
    """Return the atom of a JSON value.  Redundant zeros are allowed; see :func:`canonical_atom`.

    Raises:
        Rejected: `codes.form`: it is malformed; `codes.value`: a number is out of range.
    """
    mechanism = value.get("mechanism") if isinstance(value, dict) else None
    known = isinstance(mechanism, str) and mechanism in _READERS
    if not isinstance(value, dict) or not isinstance(mechanism, str) or not known:
        raise Rejected(codes.form, f"{path}.mechanism", " or ".join(_READERS), mechanism)
    _, members, read = _READERS[mechanism]
    item = as_object(value, path, codes.form, ["mechanism", *members], ["times"])
    times = _count(item, "times", path, codes, 1, MAX_TIMES) if "times" in item else 1
    return read(item, path, codes, times)


def canonical_atom(value: Json, path: str, code: Code) -> Atom:
    """Return the atom of a JSON value in canonical form, the only form in cores and ledgers.

    Raises:
        Rejected: `code`: it is no atom, or not in canonical form.
    """
    atom = read_atom(value, path, Codes(code, code))
    expected = atom_document(atom)
    ensure(value == expected, code, path, f"the canonical form {expected}", value)
    return atom


def atom_document(atom: Atom) -> dict[str, Json]:
    """Return the canonical JSON of an atom; it has `times` only if this is not 1."""
    name = next(name for name, (kind, *_) in _READERS.items() if kind is type(atom))
    made: dict[str, Json] = {"mechanism": name}
    for member in _READERS[name][1]:
        value = getattr(atom, member)
        made[member] = value.text if isinstance(value, Exact) else value
    if isinstance(atom, Points):
        made["points"] = [[alpha.text, epsilon.text] for alpha, epsilon in atom.points]
    if isinstance(atom, DiscreteGaussian):
        made["sensitivity"] = atom.sensitivity.numerator
    return made if atom.times == 1 else {**made, "times": atom.times}


def _response(item: Mapping[str, Json], path: str, codes: Codes, times: int) -> Atom:
    probability = _number(item["probability"], f"{path}.probability", codes)
    one: int = 10**probability.places
    holds = 0 < probability.numerator < one
    place = f"{path}.probability"
    ensure(holds, codes.value, place, "above 0 and below 1", probability.text)
    choices = _count(item, "choices", path, codes, 2, MAX_CHOICES)
    return RandomizedResponse(probability=probability, choices=choices, times=times)


def _gaussian(item: Mapping[str, Json], path: str, codes: Codes, times: int) -> Atom:
    sigma, sensitivity = _above_zero(item, ("sigma", "sensitivity"), path, codes)
    return Gaussian(sigma=sigma, sensitivity=sensitivity, times=times)


def _laplace(item: Mapping[str, Json], path: str, codes: Codes, times: int) -> Atom:
    scale, sensitivity = _above_zero(item, ("scale", "sensitivity"), path, codes)
    return Laplace(scale=scale, sensitivity=sensitivity, times=times)


def _discrete(item: Mapping[str, Json], path: str, codes: Codes, times: int) -> Atom:
    (sigma,) = _above_zero(item, ("sigma",), path, codes)
    steps = Exact(_count(item, "sensitivity", path, codes, 1, MAX_CHOICES), 0)
    return DiscreteGaussian(sigma=sigma, sensitivity=steps, times=times)


def _subsampled(item: Mapping[str, Json], path: str, codes: Codes, times: int) -> Atom:
    rate, sigma, sensitivity = _above_zero(item, ("rate", "sigma", "sensitivity"), path, codes)
    ensure(rate.numerator <= 10**rate.places, codes.value, f"{path}.rate", "at most 1", rate.text)
    return SubsampledGaussian(rate=rate, sigma=sigma, sensitivity=sensitivity, times=times)


def _points(item: Mapping[str, Json], path: str, codes: Codes, times: int) -> Atom:
    listed, place = item["points"], f"{path}.points"
    if not isinstance(listed, list) or not listed:
        raise Rejected(codes.form, place, "a list of pairs, not empty", listed)
    ensure(len(listed) <= MAX_POINTS, codes.value, place, f"at most {MAX_POINTS}", len(listed))
    points: list[tuple[Exact, Exact]] = []
    for i, pair in enumerate(listed):
        at = f"{place}[{i}]"
        if not isinstance(pair, list) or len(pair) != 2:
            raise Rejected(codes.form, at, "a pair of alpha and epsilon", pair)
        alpha, epsilon = _number(pair[0], at, codes), _number(pair[1], at, codes)
        one = 10**alpha.places
        ensure(alpha.numerator > one, codes.value, at, "an alpha above 1", alpha.text)
        ensure(epsilon.numerator >= 0, codes.value, at, "an epsilon of at least 0", epsilon.text)
        if points:
            last = points[-1][0]
            rises = last.numerator * one < alpha.numerator * 10**last.places
            ensure(rises, codes.value, at, f"an alpha above {last.text}", alpha.text)
        points.append((alpha, epsilon))
    least, places = LEAST_ORDER
    top = points[-1][0]
    reaches: bool = top.numerator * 10**places >= least * 10**top.places
    expected = f"one of at least {format_decimal(least, places)} last"
    ensure(reaches, codes.value, place, expected, top.text)
    return Points(points=tuple(points), times=times)


LEAST_ORDER = Exact(10078125, 7)  # 1 + 1/128, the least order of privacy curves
_READERS = {
    "randomized_response": (RandomizedResponse, ("probability", "choices"), _response),
    "gaussian": (Gaussian, ("sigma", "sensitivity"), _gaussian),
    "laplace": (Laplace, ("scale", "sensitivity"), _laplace),
    "discrete_gaussian": (DiscreteGaussian, ("sigma", "sensitivity"), _discrete),
    "subsampled_gaussian": (SubsampledGaussian, ("rate", "sigma", "sensitivity"), _subsampled),
    "rdp": (Points, ("points",), _points),
}


def _above_zero(
    item: Mapping[str, Json], names: tuple[str, ...], path: str, codes: Codes
) -> list[Exact]:
    found = [_number(item[name], f"{path}.{name}", codes) for name in names]
    for name, (number, _) in zip(names, found, strict=True):
        ensure(number > 0, codes.value, f"{path}.{name}", "above 0", item[name])
    return found


def _number(value: Json, path: str, codes: Codes) -> Exact:
    """Read an exact decimal from a text.  It may be negative: callers check the sign."""
    match = _NUMBER.fullmatch(value) if isinstance(value, str) and len(value) <= 160 else None
    if match is None:
        raise Rejected(codes.form, path, 'a decimal as a text, such as "0.25"', value)
    sign, whole, part = match[1], match[2], match[3] or ""
    part = "" if part == "0" else part
    short = max(len(whole), len(part)) <= DIGITS
    ensure(short, codes.value, path, f"at most {DIGITS} digits on each side of the point", value)
    number = int(whole + part)
    return Exact(-number if sign else number, len(part))


def _count(
    item: Mapping[str, Json], name: str, path: str, codes: Codes, least: int, most: int
) -> int:
    """Read an integer, or its text."""
    value, place = item[name], f"{path}.{name}"
    if isinstance(value, str) and _COUNT.fullmatch(value):
        value = int(value)
    if type(value) is not int:
        raise Rejected(codes.form, place, "an integer", value)
    ensure(least <= value <= most, codes.value, place, f"{least} .. {most}", value)
    return value
