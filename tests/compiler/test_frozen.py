"""The compiler's frozen classes beside those of the standard library: alike to their users."""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tcc_compiler.frozen import frozen

COMPILER = Path(__file__).parents[2] / "compiler" / "tcc_compiler"
Decorator = Callable[[type], type]
NAMED: tuple[Decorator, Decorator] = (frozen, dataclass(frozen=True, slots=True, kw_only=True))
PLACED: tuple[Decorator, Decorator] = (
    frozen(kw_only=False), dataclass(frozen=True, slots=True),
)  # fmt: skip


def point(decorate: Decorator) -> Any:
    @decorate
    class Point:
        """A place."""

        x: int
        y: tuple[int, ...] = ()
        seen: list[int] = field(default_factory=lambda: [0], compare=False, repr=False)
        unit: str = field(default="m", metadata={"about": "of both"})

        @property
        def far(self) -> bool:
            return self.x > 9

    return Point


def plain(decorate: Decorator) -> Any:
    @decorate
    class Empty:
        """Nothing."""

    return Empty


@frozen
class Kept:
    """For pickles, which need a class with a name of its own."""

    first: int
    rest: tuple[str, ...] = ()


def ending(call: Callable[[], Any]) -> Any:
    """What a call gives: its value, or the type of its error."""
    try:
        return call()
    except (TypeError, AttributeError) as error:
        return type(error)


USES: dict[str, Callable[[Any], Any]] = {
    "all": lambda p: repr(p(x=1, y=(2,), seen=[3], unit="km")),
    "defaults": lambda p: (p(x=1).y, p(x=1).seen, p(x=1).unit),
    "order of names": lambda p: repr(p(unit="km", y=(2,), x=1)),
    "its own default": lambda p: p(x=1).seen is not p(x=1).seen,
    "equal": lambda p: p(x=1, seen=[1]) == p(x=1, seen=[2]),
    "unequal": lambda p: p(x=1) == p(x=2),
    "unequal at the last": lambda p: p(x=1, unit="m") != p(x=1, unit="km"),
    "another type": lambda p: p(x=1) == (1, (), "m"),
    "a type alike": lambda p: p(x=1) == point(NAMED[1])(x=1),
    "hash": lambda p: hash(p(x=1, y=(2,), seen=[1])) == hash(p(x=1, y=(2,), seen=[2])),
    "hash of its fields": lambda p: hash(p(x=1, y=(2,))) == hash((1, (2,), "m")),
    "hash of a list": lambda p: hash(p(x=[])),
    "replaced": lambda p: repr(replace(p(x=1, unit="km"), x=2)),
    "replaced by what is no field": lambda p: replace(p(x=1), z=2),
    "as a dictionary": lambda p: asdict(p(x=1)),
    "fields": lambda p: [(f.name, f.type, f.default, f.kw_only, f.metadata) for f in fields(p)],
    "a dataclass": is_dataclass,
    "matched by place": lambda p: p.__match_args__,
    "slots": lambda p: (p.__slots__, hasattr(p(x=1), "__dict__")),
    "name": lambda p: (p.__name__, p.__qualname__, p.__module__, p.__doc__),
    "property": lambda p: (p(x=9).far, p(x=10).far),
    "copy": lambda p: (copy.copy(p(x=1)) == p(x=1), copy.deepcopy(p(x=1, y=(2,))).y),
    "set": lambda p: setattr(p(x=1), "x", 2),
    "delete": lambda p: delattr(p(x=1), "x"),
    "by place": lambda p: repr(p(1, (2,), [3], "km")),
    "some by place": lambda p: repr(p(1, (2,), unit="km")),
    "one by place": lambda p: repr(p(1)),
    "none": lambda p: p(),
    "no x": lambda p: p(y=(2,)),
    "no field": lambda p: p(x=1, z=2),
    "twice": lambda p: p(1, x=1),
    "too many": lambda p: p(1, (), [], "m", 5),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("pair", [NAMED, PLACED], ids=["by name", "by place"])
def test_a_frozen_class_does_what_a_frozen_dataclass_does(
    pair: tuple[Decorator, Decorator], use: str
) -> None:
    ours, theirs = map(point, pair)
    assert ending(lambda: USES[use](ours)) == ending(lambda: USES[use](theirs))


@pytest.mark.parametrize("pair", [NAMED, PLACED], ids=["by name", "by place"])
def test_a_frozen_class_without_fields_equals_all_of_its_class_and_no_others(
    pair: tuple[Decorator, Decorator],
) -> None:
    for decorate in pair:
        empty, other = plain(decorate), plain(decorate)
        assert empty() == empty()
        assert hash(empty()) == hash(empty())
        assert empty() != other()
        assert repr(empty()).endswith("Empty()")
        with pytest.raises(TypeError):
            empty(x=1)


def test_a_frozen_class_that_is_not_compared_equals_itself_alone() -> None:
    made = point(frozen(eq=False))
    one = made(x=1)
    assert one == one and one != made(x=1)
    assert {one: 1}[one] == 1
    with pytest.raises(FrozenInstanceError):
        one.x = 2


def test_what_is_wrong_with_a_call_is_said_with_the_name_of_the_field() -> None:
    named, placed = point(frozen), point(frozen(kw_only=False))
    for made, call, said in (
        (named, lambda: named(), "Point() needs 'x'"),
        (named, lambda: named(x=1, z=2), "Point() has no place for 'z'"),
        (named, lambda: named(1), "Point() takes 0 values, not 1"),
        (placed, lambda: placed(1, x=1), "Point() has no place for 'x'"),
        (placed, lambda: placed(1, 2, 3, 4, 5), "Point() takes 4 values, not 5"),
    ):
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value) == f"{made.__qualname__.removesuffix('Point')}{said}"
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        placed(1).x = 2
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'z'"):
        placed(1).z = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del placed(1).x


def test_a_method_of_the_class_itself_stays() -> None:
    @frozen
    class Named:
        """With a repr of its own."""

        x: int

        def __repr__(self) -> str:
            return f"<{self.x}>"

    assert repr(Named(x=1)) == "<1>"


def test_a_frozen_object_goes_through_a_pickle() -> None:
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(Kept(first=1, rest=("a",)), protocol))
        assert again == Kept(first=1, rest=("a",)) and type(again) is Kept


def test_frozen_objects_are_matched() -> None:
    @frozen(kw_only=False)
    class Pair:
        """Two."""

        left: int
        right: int

    match Pair(1, 2):
        case Pair(left, right):
            assert (left, right) == (1, 2)


def test_no_source_is_compiled_for_a_frozen_class(monkeypatch: pytest.MonkeyPatch) -> None:
    run = exec

    def refuse(source: Any, *given: Any) -> None:
        # Python 3.14 runs an empty frame where no method is due.
        if not isinstance(source, str) or source.count("def ") != 1:
            raise AssertionError("source was compiled")
        run(source, *given)

    monkeypatch.setattr(builtins, "exec", refuse)
    with pytest.raises(AssertionError):
        point(NAMED[1])
    assert point(frozen)(x=1).x == 1
    methods = [point(frozen).__init__, point(frozen).__eq__]
    assert all(inspect.getsourcefile(method) == frozen.__code__.co_filename for method in methods)


def test_the_compiler_has_no_frozen_dataclass_of_the_standard_decorator() -> None:
    for path in COMPILER.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                said = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
                standard = "dataclass(" in said and "frozen=True" in said
                assert not standard, f"{path}: {node.name}: write @frozen of tcc_compiler.frozen"
