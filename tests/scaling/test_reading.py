"""Reading a core costs in proportion to its size, whatever there is more of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.reading import large

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.policy.reader import read_core
from tests.scaling.measure import MOST, growth, peak, swelling

Sample = Callable[[int], dict[str, Any]]


def reading(data: bytes) -> Callable[[], object]:
    """The work of reading a core, whether it is taken or not."""

    def read() -> None:
        try:
            read_core(data)
        except Rejected as refusal:
            assert refusal.code == "D201"

    return read


def test_statements_and_tools() -> None:
    assert growth(lambda n: reading(large(n)), 4) < MOST


def test_memory_of_statements_and_tools() -> None:
    assert swelling(lambda n: reading(large(n)), 8) < MOST


def core(**members: Any) -> dict[str, Any]:
    """A core of one tool that has these members."""
    empty: dict[str, Any] = {"calls": [], "patterns": [[]], "rules": [], "plan": ["call", 0]}
    return {
        "schema": "tcc.core/2", "grammar": {"name": "g", "version": "1"}, "tools": [tool("a")],
        "statements": [], **empty, **members,
    }  # fmt: skip


def tool(name: str, *fields: Any) -> dict[str, Any]:
    return {"name": name, **({"fields": list(fields)} if fields else {})}


def listed(name: str, *values: str) -> dict[str, Any]:
    return {"name": name, "values": list(values)}


def forbid(on: Any, *where: Any) -> dict[str, Any]:
    return {"kind": "forbid", "on": on, **({"if": list(where)} if where else {})}


def require(on: Any, then: Any, *lets: Any) -> dict[str, Any]:
    return {"kind": "require", "on": on, "lets": list(lets), "then": then}


def equal(left: Any, right: Any) -> Any:
    return ["compare", "=", left, right]


def wide_sets(n: int) -> dict[str, Any]:
    """A statement about all tools but one, for each tool."""
    names = [f"t{at}" for at in range(n)]
    statements = [forbid(["-", ["any"], ["name", name]]) for name in names]
    return core(tools=[tool(name) for name in names], statements=statements)


def different_fields(n: int) -> dict[str, Any]:
    """One field of many kinds, and many statements about it."""
    tools = [tool(f"t{at}", listed("k", "x", f"v{at}")) for at in range(n)]
    return core(tools=tools, statements=[forbid(["any"], equal(["name", "k"], ["name", "x"]))] * n)


def different_sets(n: int) -> dict[str, Any]:
    """The same, and each statement is about another set of tools."""
    found = different_fields(n)
    for at, statement in enumerate(found["statements"]):
        found["statements"][at] = {**statement, "on": ["-", ["any"], ["name", f"t{at}"]]}
    return found


def different_names(n: int) -> dict[str, Any]:
    """Each tool has a field of its own name, and statements about all tools name them."""
    tools = [tool(f"t{at}", listed(f"k{at}", "x")) for at in range(n)]
    one = [forbid(["any"], equal(["name", f"k{at}"], ["name", "x"])) for at in range(n)]
    return core(tools=tools, statements=one)


def many_values(n: int) -> dict[str, Any]:
    """A field of many values, and many comparisons with one of them."""
    tools = [tool("a", listed("k", *[f"v{at}" for at in range(n)]))]
    one = forbid(["name", "a"], equal(["name", "k"], ["name", f"v{n - 1}"]))
    return core(tools=tools, statements=[one] * n)


def numbers_of_one_hash(n: int) -> dict[str, Any]:
    """Listed numbers that differ by multiples of the modulus of Python's hashes of numbers."""
    numbers = [str(at * (2**61 - 1)) for at in range(n)]
    numbers = [text for text in numbers if float(text) == int(text)] or ["1"]
    numbers = [str(at) for at in range(n - len(numbers))] + [t for t in numbers if len(t) > 12]
    arms = [["arm", ["n", "1"], ["n", text]] for text in numbers]
    match = ["match", ["name", "k"], *arms[: min(n, 3000)], ["else", ["n", "2"]]]
    statement = require(["name", "a"], equal(match, ["n", "1"]))
    return core(tools=[tool("a", listed("k", *numbers))], statements=[statement])


def long_chain_of_lets(n: int) -> dict[str, Any]:
    lets = [{"name": f"a{at}", "is": ["name", f"a{at + 1}"]} for at in range(n)]
    return core(lets=[*lets, {"name": f"a{n}", "is": ["n", "1"]}])


def lets_of_a_block(n: int) -> dict[str, Any]:
    """Blocks of 100 lets."""
    lets = [{"name": f"a{at}", "is": ["n", "1"]} for at in range(100)]
    used = ["and", *[equal(["name", let["name"]], ["n", "1"]) for let in lets]]
    return core(statements=[require(["name", "a"], used, *lets)] * max(1, n // 100))


def expansions(n: int) -> dict[str, Any]:
    """Statements that all expand one large let; soon they are too many for their core."""
    body = ["or", *[["b", True]] * 500]
    lets = [{"name": "big", "is": body}]
    return core(lets=lets, statements=[require(["name", "a"], ["name", "big"])] * n)


def learned(n: int) -> dict[str, Any]:
    """Attributes that are learned from the last field of a tool of many fields."""
    fields = [listed(f"k{at}", "x") for at in range(n)]
    given = [{"name": f"g{at}", "from": [["a", f"k{n - 1}"]]} for at in range(n)]
    return core(tools=[tool("a", *fields)], given=given)


def long_values(n: int) -> dict[str, Any]:
    """Long numbers and texts."""
    texts = equal(["s", "x" * n], ["s", "x" * n])
    numbers = [["compare", "<", ["n", "9" * 3999], ["n", "1"]]] * (n // 100)
    return core(statements=[require(["name", "a"], ["and", texts, *numbers])])


def negations(n: int) -> dict[str, Any]:
    """Statements as deeply nested as they may be."""
    then: Any = equal(["n", "1"], ["n", "2"])
    for _ in range(70):
        then = ["not", then]
    return core(statements=[require(["name", "a"], then)] * (n // 20))


HOSTILE: dict[str, tuple[Sample, int]] = {
    "wide sets": (wide_sets, 200),
    "different fields": (different_fields, 100),
    "different names": (different_names, 200),
    "many values": (many_values, 200),
    "numbers of one hash": (numbers_of_one_hash, 300),
    "a long chain of lets": (long_chain_of_lets, 1000),
    "lets of a block": (lets_of_a_block, 300),
    "expansions": (expansions, 40),
    "learned attributes": (learned, 200),
    "long values": (long_values, 2000),
    "negations": (negations, 400),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.sampled(4)
def test_steps_of_hostile_cores(name: str) -> None:
    sample, size = HOSTILE[name]
    assert growth(lambda n: reading(encode(sample(n))), size) < MOST


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.sampled(4)
def test_memory_of_hostile_cores(name: str) -> None:
    sample, size = HOSTILE[name]
    data = encode(sample(8 * size))
    assert peak(reading(data)) < 200 * len(data) + (128 << 20)


def test_sets_that_all_differ_are_declined() -> None:
    with pytest.raises(Rejected) as refusal:
        read_core(encode(different_sets(2000)))
    assert refusal.value.code == "D201"
