"""The questions, and their answers as the tables have them.

An answer is computed from the arrays and constants that the packages ship, by another way than the
pipeline's: the pipeline reads texts.  Nothing is typed in.  Where a text has rounded a number, the
answer that follows from it is right if it is within half a percent of the table's.  Some
questions are put in words that the texts do not have; those are there to fail.
Cost: loading the data sets, some tenths of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tcc_experiments.pipeline.errors import bring

TOLERANCE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    Attributes:
        name: of its category and number; names its ledgers.
        category: the true one.
        text: as it is asked.
        answer: from the tables.
    """

    name: str
    category: str
    text: str
    answer: float

    def is_right(self, value: float | None) -> bool:
        """Whether a value is the answer, within the tolerance."""
        return value is not None and abs(value - self.answer) <= TOLERANCE * abs(self.answer)


@cache
def all_questions() -> tuple[Question, ...]:
    """Every question, by category.

    Raises:
        MissingExtra: a package is not installed.
    """
    found = list[Question]()
    for category, asked in (
        ("constants", _constants()),
        ("units", _units()),
        ("datasets", (*_iris(), *_wine(), *_cancer(), *_sizes())),
    ):
        for at, (text, answer) in enumerate(asked, 1):
            name = f"{category}-{at:02d}"
            found.append(Question(name=name, category=category, text=text, answer=float(answer)))
    return tuple(found)


# A question about constants, and the constant of the table that is its answer.
_CONSTANTS = (
    ("the ratio of the proton mass to the electron mass", "proton-electron mass ratio"),
    ("the ratio of the neutron mass to the electron mass", "neutron-electron mass ratio"),
    ("the ratio of the muon mass to the electron mass", "muon-electron mass ratio"),
    ("the ratio of the tau mass to the muon mass", "tau-muon mass ratio"),
    ("the ratio of the deuteron mass to the electron mass", "deuteron-electron mass ratio"),
    ("the ratio of the alpha particle mass to the proton mass", "alpha particle-proton mass ratio"),
    ("the Avogadro constant times the Boltzmann constant", "molar gas constant"),
    ("the Avogadro constant times the elementary charge", "Faraday constant"),
    ("the molar gas constant divided by the Avogadro constant", "Boltzmann constant"),
    ("the electron mass times {c} times {c}", "electron mass energy equivalent"),
    ("the proton mass times {c} times {c}", "proton mass energy equivalent"),
    ("the Planck constant divided by the electron mass divided by {c}", "Compton wavelength"),
    ("the neutron mass minus the proton mass", "neutron-proton mass difference"),
    ("the Bohr radius times the fine-structure constant", "reduced Compton wavelength"),
    ("twice the elementary charge over the Planck constant", "Josephson constant"),
    ("the magnetic flux quantum", "mag. flux quantum"),
    ("the mass of a hydrogen nucleus", "proton mass"),
    ("the Rydberg constant times {c}", "Rydberg constant times c in Hz"),
    ("the Faraday constant divided by the elementary charge", "Avogadro constant"),
)


def _constants() -> Iterator[tuple[str, float]]:
    value: Callable[[str], float] = bring("scipy.constants").value
    for asked, answer in _CONSTANTS:
        yield f"What is {asked.format(c='the speed of light in vacuum')}?", value(answer)


def _units() -> Iterator[tuple[str, float]]:
    unit: Any = bring("scipy.constants")
    for small, big, answer in (
        ("inch in meters", "one mile in meters", unit.mile / unit.inch),
        ("yard in meters", "one nautical mile in meters", unit.nautical_mile / unit.yard),
        ("foot in meters", "one mile in meters", unit.mile / unit.foot),
        ("ounce in kg", "one pound in kg", unit.pound / unit.ounce),
        ("grain in kg", "one ounce in kg", unit.ounce / unit.grain),
        ("minute in seconds", "one week in seconds", unit.week / unit.minute),
        ("hour in seconds", "one Julian year in seconds", unit.Julian_year / unit.hour),
        ("erg in Joules", "one British thermal unit in Joules", unit.Btu / unit.erg),
        ("torr in pascals", "one bar in pascals", unit.bar / unit.torr),
        ("acre in square meters", "one hectare in square meters", unit.hectare / unit.acre),
        ("liter in cubic meters", "one barrel in cubic meters", unit.barrel / unit.liter),
        ("dyne in newtons", "one pound force in newtons", unit.pound_force / unit.dyne),
        ("light year in meters", "one parsec in meters", unit.parsec / unit.light_year),
        ("fortnight in seconds", "one year in seconds", unit.year / (2 * unit.week)),
    ):
        yield f"How many {small} are there in {big}?", answer
    yield "What is one horsepower in watts times one hour in seconds?", unit.hp * unit.hour
    yield "What is one psi in pascals divided by one bar in pascals?", unit.psi / unit.bar
    yield "What is the sum of one mile in meters and one yard in meters?", unit.mile + unit.yard
    yield (
        "What is the difference between one survey foot in meters and one foot in meters?",
        (unit.survey_foot - unit.foot),
    )
    yield (
        "What is the sum of one stone in kg and one troy pound in kg?",
        (unit.stone + unit.troy_pound),
    )
    yield "How long is an astronomical unit, in metres?", unit.au


def _iris() -> Iterator[tuple[str, float]]:
    data = bring("sklearn.datasets").load_iris()
    column = {name.removesuffix(" (cm)"): data.data[:, at]
              for at, name in enumerate(data.feature_names)}  # fmt: skip
    for name, values in column.items():
        yield f"What is the mean {name} of iris plants?", values.mean()
        yield f"What is the range of {name} of iris plants?", values.max() - values.min()
    both = "the mean petal length of iris plants to the mean petal width of iris plants"
    ratio = column["petal length"].mean() / column["petal width"].mean()
    yield f"What is the ratio of {both}?", ratio
    yield "How wide is the average sepal of an iris?", column["sepal width"].mean()


def _wine() -> Iterator[tuple[str, float]]:
    data = bring("sklearn.datasets").load_wine()
    named = ("alcohol", "malic acid", "ash", "alcalinity of ash", "magnesium", "total phenols")
    for at, name in enumerate(named):
        values = data.data[:, at]
        yield (
            f"What is the range of {name} in the wine recognition dataset?",
            (values.max() - values.min()),
        )
    proline = data.data[:, data.feature_names.index("proline")]
    where = "in the wine recognition dataset"
    ratio = proline.max() / proline.min()
    yield f"What is the ratio of the max proline {where} to the min proline {where}?", ratio
    yield (
        "What is the mean hue in the wine recognition dataset?",
        (data.data[:, data.feature_names.index("hue")].mean()),
    )


def _cancer() -> Iterator[tuple[str, float]]:
    data = bring("sklearn.datasets").load_breast_cancer()
    column = {str(name): data.data[:, at] for at, name in enumerate(data.feature_names)}
    for name in ("radius", "texture", "perimeter", "area", "smoothness"):
        values = column[f"worst {name}"]
        yield (
            f"What is the range of {name} (worst) in the breast cancer dataset?",
            (values.max() - values.min()),
        )
    values = column["mean radius"]
    yield "What is the max radius (mean) in the breast cancer dataset?", values.max()


def _sizes() -> Iterator[tuple[str, float]]:
    datasets = bring("sklearn.datasets")
    shape = {
        title: getattr(datasets, f"load_{name}")().data.shape
        for title, name in (
            ("the iris plants dataset", "iris"),
            ("the wine recognition dataset", "wine"),
            ("the digits dataset", "digits"),
            ("the breast cancer dataset", "breast_cancer"),
            ("the diabetes dataset", "diabetes"),
            ("the Linnerrud dataset", "linnerud"),
        )
    }
    for title, (rows, columns) in shape.items():
        both = f"instances of {title} times the number of attributes of {title}"
        yield f"What is the number of {both}?", rows * columns
    digits, iris = "the digits dataset", "the iris plants dataset"
    both = f"the number of instances of {digits} divided by the number of instances of {iris}"
    yield f"What is {both}?", shape[digits][0] / shape[iris][0]
