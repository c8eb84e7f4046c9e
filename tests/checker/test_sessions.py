"""Sessions: the extracted checker says of a ledger what ``tcc_certs`` says, or declines it by name.

A form of ledgers of which it has no theorem is DECLINED; its VALID of what ``tcc_certs`` refuses
would be a fault in a definition of the proofs, as would be its REJECTED of an honest ledger.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tcc as library
from tcc.library import artifact_bytes, second_checker
from tcc.library.second_checker import session_verdicts
from tcc.main import cli
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.session.validation import validate
from tests.checker.verdicts import agree, program
from tests.forgery.test_session_forgeries import mutants
from tests.oracle.build import build
from tests.oracle_session.desk import desk_core, desk_plans
from tests.oracle_session.shapes import NAMES, shape
from tests.oracle_session.writer import SessionWriter, named, sealed

pytestmark = pytest.mark.skipif(
    program() is None, reason="no extracted checker (scripts/proofs --checker), and no node"
)
Records = list[dict[str, Any]]


def differing(artifact: bytes, ledgers: Sequence[bytes]) -> tuple[list[Any], Counter[str]]:
    """The ledgers about which the two do not agree, and how often each line was said."""
    found, lines = [], session_verdicts(artifact, ledgers, program())
    checked = check(artifact)
    for ledger, line in zip(ledgers, lines, strict=True):
        certs = validate(ledger, checked)
        if not agree(certs.word, certs.claim_type, line):
            found.append((line, certs.word, certs.claim_type, certs.findings[:1], ledger))
    return found, Counter(lines)


DESK = """grammar desk version "1.1"

tool ask(q: x | "y z") gives (label: a | b | c, sure: yes | no) { strict errors mean failed }
tool look gives (size: small | large) { parallel }
tool go(to: a | b) { parallel }
tool note { parallel }

plan = (ask (look | note){0,2}){0,2} (look(size=small) go | go(to=b) | look)?

limit depth <= 6
"""
TOLD = {
    "ask": {"label": ("a", "b", "c"), "sure": ("yes", "no")},
    "look": {"size": ("small", "large")},
}
LISTED = {"ask": {"q": ("x", '"y z"')}, "go": {"to": ("a", "b")}}


@cache
def desk() -> bytes:
    """An artifact without values that are open, and without monitors."""
    return artifact_bytes(library.compile_text(DESK))


def told(rng: random.Random, tool: str) -> dict[str, str]:
    return {name: rng.choice(values) for name, values in TOLD.get(tool, {}).items()}


def session(rng: random.Random, checked: CheckedArtifact, most: int = 7) -> Records:
    """Calls beside one another, outcomes in any order, some of them late, some in part."""
    writer = SessionWriter(checked)
    under_way: list[tuple[int, str]] = []
    unknown: list[tuple[int, str]] = []
    for _ in range(rng.randint(0, most)):
        tool = rng.choice(["ask", "look", "look", "go", "note", "note"])
        together = {tool, *(name for _, name in under_way)} <= {"look", "note"}
        if under_way and (not together or rng.random() < 0.4):
            rng.shuffle(under_way)
            while under_way:
                tell(rng, writer, under_way, unknown)
        listed = {name: rng.choice(values) for name, values in LISTED.get(tool, {}).items()}
        under_way.append((writer.call(tool, listed, ref=f"{rng.random()}"), tool))
        if rng.random() < 0.6:
            tell(rng, writer, under_way, unknown)
        if unknown and rng.random() < 0.5:
            seq, name = unknown.pop(rng.randrange(len(unknown)))
            if rng.random() < 0.7:
                writer.resolve(seq, "done", **told(rng, name))
            else:
                writer.resolve(seq, "failed")
        if rng.random() < 0.1:
            writer.refusal("look", rng.choice(["R201", "R301"]))
    while under_way and rng.random() < 0.95:
        tell(rng, writer, under_way, unknown)
    if rng.random() < 0.85:
        writer.end(abandoned=rng.random() < 0.4)
    return writer.records


def tell(
    rng: random.Random,
    writer: SessionWriter,
    under_way: list[tuple[int, str]],
    unknown: list[tuple[int, str]],
) -> None:
    seq, tool = under_way.pop(rng.randrange(len(under_way)))
    happened = rng.choices(["done", "unknown", "failed", "in part"], [6, 2, 1, 1])[0]
    if happened == "in part" and tool in TOLD and seq == len(writer.brute.session):
        given = told(rng, tool)
        given.pop(rng.choice(list(given)))
        writer.done(unforeseen=True, **given)
        if given:
            writer.records[-1]["observed"] = given
    elif happened in ("done", "in part"):
        writer.tell(seq, "done", **told(rng, tool))
    else:
        writer.tell(seq, happened)
        if happened == "unknown":
            unknown.append((seq, tool))


@cache
def sessions(many: int, seed: int = 29) -> tuple[Records, ...]:
    rng, checked = random.Random(seed), check(desk())
    return tuple([session(rng, checked) for _ in range(many)])


@pytest.mark.parametrize("many", [150, pytest.param(5000, marks=pytest.mark.campaign)])
def test_random_sessions_are_judged_alike(many: int) -> None:
    found, lines = differing(desk(), [sealed(records) for records in sessions(many)])
    assert found == []
    assert lines["VALID: Conformant"] > 5 and lines["VALID: ConformantPrefix"] > 5
    assert lines["INCOMPLETE: ConformantPrefix"] > 3
    assert not any(line.startswith("DECLINED") for line in lines)


OTHERS: dict[str, list[Any]] = {
    "call": ["note", "look", "go(to=a)", "go(to=b)", "ask(q=x)", 'ask(q="y z")', "go", "ask"],
    "observed": [
        {"size": "large"}, {"size": "small"}, {"label": "a", "sure": "no"}, {"label": "a"},
        {"label": "b", "sure": "yes"}, {"sure": "no"}, {"label": "x", "sure": "no"},
        {"label": "a", "sure": "no", "size": "small"}, {"size": 1}, {"size": ""},
    ],
    "answered": [True, False, 1],
    "who": ["somebody"], "at_ms": [1], "made": [True], "shadow": [True], "parent": ["x"],
    "given": [{}], "constants": [[]], "principal": ["ab" * 32, "x"], "execute": [{}],
}  # fmt: skip


def forgeries(records: Records, step: int = 1) -> list[bytes]:
    """Every field of every record changed, left out and added, the chain sealed again.

    Args:
        step: of so many forgeries one is made.
    """
    return [sealed(forged) for forged in [*_changed(records)][::step]]


def _changed(records: Records) -> Iterator[Records]:
    for at, record in enumerate(records):
        for name, values in OTHERS.items():
            for value in values:
                yield [*records[:at], {**record, name: value}, *records[at + 1 :]]
        if record["kind"] == "resolve":
            for who in ("a", "é" * 255, "é" * 256, ""):
                named_by = {**record, "who": who, "at_ms": 1}
                yield [*records[:at], named_by, *records[at + 1 :]]
    for at, field, _, forged in mutants(records):
        head = forged[0]
        started = head.get("started_ms")
        in_form = type(started) is int and 0 <= started < 1 << 48
        if at == 0 and field != "session_id" and in_form:
            forged = [named(head), *forged[1:]]
        yield forged


@cache
def honest(many: int) -> tuple[Records, ...]:
    """Sessions that conform, the longest ones first."""
    checked = check(desk())
    kept = [one for one in sessions(400) if validate(sealed(one), checked).word == "VALID"]
    return tuple(sorted(kept, key=len, reverse=True)[:many])


@cache
def short() -> tuple[Records, ...]:
    """Of the kinds of records, each in a session of few records that conforms."""
    found: list[Records] = []
    seen: set[str] = set()
    for records in sorted(honest(400), key=lambda one: (-len({r["kind"] for r in one}), len(one))):
        if more := {record["kind"] for record in records} - seen:
            seen |= more
            found.append(records)
    assert seen == {"session", "call", "outcome", "resolve", "refusal", "end"}
    return tuple(found)


@pytest.mark.parametrize("many", [0, pytest.param(40, marks=pytest.mark.campaign)])
def test_forged_fields_are_judged_alike(many: int) -> None:
    """In the campaign each forgery of many sessions; by default one in three of short ones."""
    seen: Counter[str] = Counter()
    for records in honest(many) or short():
        found, lines = differing(desk(), forgeries(records, 1 if many else 3))
        assert found == []
        seen += lines
    rejected = sum(count for line, count in seen.items() if line.startswith("REJECTED"))
    declined = sum(count for line, count in seen.items() if line.startswith("DECLINED"))
    assert rejected > 2 * declined and seen["VALID: Conformant"] + seen["VALID: ConformantPrefix"]


def test_records_moved_and_cut_and_bytes_flipped_are_judged_alike() -> None:
    for records in short():
        moved = []
        for at in range(len(records)):
            moved.append([*records[: at + 1], *records[at:]])
            moved.append([*records[:at], *records[at : at + 2][::-1], *records[at + 2 :]])
            moved.append([*records[:at], *records[at + 1 :]])
        data = sealed(records)
        step = max(1, len(data) // 150)
        cut = [data[:end] for end in range(0, len(data), step)]
        flipped = [
            data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in range(0, len(data), step)
        ]
        more = [data + tail for tail in (b"\n", b"x", data[-60:], data)]
        old = sealed([named({**records[0], "schema": "tcc.session/1.0"}), *records[1:]])
        ledgers = [sealed(one) for one in moved] + cut + flipped + more + [old, b""]
        assert differing(desk(), ledgers)[0] == []


def judged(data: bytes, *records: dict[str, Any]) -> str:
    """The line about a session of these records that ends."""
    writer = SessionWriter(check(data))
    ledger = sealed([*writer.records, *records, {"kind": "end", "abandoned": False}])
    [line] = session_verdicts(data, [ledger], program())
    found = validate(ledger, data)
    assert agree(found.word, found.claim_type, line)
    return line


def call(seq: int, name: str, *states: int) -> dict[str, Any]:
    return {
        "kind": "call", "seq": seq, "call": name, "open": {}, "states": [*states],
        "key": f"{seq:032x}",
    }  # fmt: skip


def test_what_the_theorem_is_not_about_is_declined() -> None:
    """Calls under way together beside a forbid over a tool whose errors mean that it failed."""
    tools = "tool go { errors mean failed parallel }\ntool come { parallel }\n"
    text = f'grammar g version "1"\n{tools}plan = (come | go){{0,2}}\nbefore come require no go\n'
    data = artifact_bytes(library.compile_text(text))
    root = check(data).file.manifest.states - 1
    failed: dict[str, Any] = {"kind": "outcome", "seq": 1, "outcome": "failed", "ms": 1}
    one, come = call(1, "go", root), call(2, "come", root)
    done = {"kind": "outcome", "seq": 2, "outcome": "done", "ms": 1}
    assert judged(data, one, failed, come, done) == "VALID: Conformant"
    read = {**failed, "answered": True}
    against = "REJECTED: a forbid, and an error that was read"
    assert judged(data, one, read, come, done) == against
    assert judged(data, one, come, done, failed).startswith("DECLINED: errors that were read")


@pytest.mark.parametrize(("unknown", "verdict"), [(5, "VALID"), (6, "REJECTED")])
def test_no_call_is_made_that_could_make_more_than_64_places(unknown: int, verdict: str) -> None:
    names = "abcdefg"
    tools = "".join(f"tool {name}\nlimit count({name}) <= 1\n" for name in names)
    text = f'grammar g version "1"\n{tools}plan = ({" | ".join(names)})*\n'
    data = artifact_bytes(library.compile_text(text))
    writer = SessionWriter(check(data))
    for name in names[:unknown]:
        writer.call(name)
        writer.unknown()
    writer.call(names[unknown])
    writer.done()
    writer.end()
    found, lines = differing(data, [writer.ledger()])
    assert not found and next(iter(lines)).startswith(verdict)


def test_calls_are_under_way_together_only_where_their_tools_commute() -> None:
    """Both parallel, and both orders the same; and 256 records at most behind the oldest."""
    tools = "".join(f"tool {name} {{ parallel }}\n" for name in "abc") + "tool d\n"
    text = f'grammar g version "1"\n{tools}plan = (a | b){{0,90}} (c a?)? d{{0,2}}\n'
    data = artifact_bytes(library.compile_text(text))
    ledgers = []
    for names in ("ab", "ba", "aa", "ac", "ca", "bc", "dd", "ad", "abab"):
        writer = SessionWriter(check(data))
        for name in names:
            writer.call(name)
        for seq in range(len(names), 0, -1):
            writer.tell(seq, "done")
        writer.end()
        ledgers.append(writer.ledger())
    for many in (254, 255, 256):
        writer = SessionWriter(check(data))
        writer.call("a")
        for _ in range(many):
            writer.refusal("d", "R201")
        writer.call("b")
        writer.tell(1, "done")
        writer.tell(2, "done")
        writer.end()
        ledgers.append(writer.ledger())
    found, lines = differing(data, ledgers)
    assert found == [] and lines["VALID: Conformant"] == 6, lines


def test_validate_with_the_proved_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim is upheld only where both say so; a form without a theorem declines."""
    artifact, ledger = tmp_path / "a.tcca", tmp_path / "s.ledger"
    artifact.write_bytes(desk())
    [records, *_] = honest(1)
    ledger.write_bytes(sealed(records))

    def run(*options: str) -> Result:
        command = ["validate", str(ledger), "--artifact", str(artifact), *options]
        return CliRunner().invoke(cli, command, env={"NO_COLOR": "1"})

    if (command := program()) is not None:
        monkeypatch.setattr(second_checker, "command_line", lambda _: command)
    found = run("--kernel", "proved")
    assert (found.exit_code, "a proved program says so too" in found.output) == (0, True)
    for line, code in (("DECLINED: monitors", "D101"), ("REJECTED: outcome", "D201")):
        monkeypatch.setattr(second_checker, "session_verdicts", lambda *_, line=line: [line])
        found = run("--kernel", "proved")
        assert found.exit_code == 2 and f"{code} the proved checker" in found.output, found.output
    ledger.write_bytes(sealed(records)[:-1])
    assert run("--kernel", "proved").exit_code == 2


MONITORED = """grammar g version "1"

tool find(kind: order | person, id: text) { parallel }
tool pay(part: half | full, order: text, by: text) { parallel errors mean failed }
tool test(id: text) gives (result: ok | bad | none)
tool close(id: text) { errors mean failed }

plan = (find | pay | test | close){0,6}

before pay require find(id = this.order, kind = order)
before close require unused find(same id)
before pay(part = full) require no close(id = this.order)
before close require no test(same id, result = bad)
before test require no find(same id, kind = person)
before find(kind = person) require no test(same id)
limit count(pay) per by <= 2 in session
"""


def monitored(rng: random.Random, checked: CheckedArtifact) -> Records:
    """Calls with few values, so that monitors matter; errors that were read among the outcomes."""
    writer = SessionWriter(checked)
    unknown: list[tuple[int, str]] = []
    for _ in range(rng.randint(1, 6)):
        tool = rng.choice(["find", "find", "pay", "test", "close"])
        listed = {"find": {"kind": rng.choice(["order", "order", "person"])}}
        listed["pay"] = {"part": rng.choice(["half", "full"])}
        names = {"pay": ("order", "by")}.get(tool, ("id",))
        opened = {name: rng.choice("ab") for name in names}
        seq = writer.call(tool, listed.get(tool, {}), **opened)
        happened = rng.choices(["done", "unknown", "failed", "read", "in part"], [8, 2, 1, 1, 1])[0]
        if happened == "read" and tool in ("pay", "close"):
            writer.failed()
            writer.records[-1]["answered"] = True
        elif happened == "in part" and tool == "test":
            writer.done(unforeseen=True)
        elif happened in ("unknown", "failed"):
            writer.tell(seq, happened)
            if happened == "unknown":
                unknown.append((seq, tool))
        else:
            answer = {"result": rng.choice(["ok", "bad", "none"])} if tool == "test" else {}
            writer.done(**answer)
        if unknown and rng.random() < 0.5:
            late, name = unknown.pop()
            answer = {"result": rng.choice(["ok", "bad"])} if name == "test" else {}
            if rng.random() < 0.3:
                writer.resolve(late, "failed")
            else:
                writer.resolve(late, "done", **answer)
    if rng.random() < 0.9:
        writer.end(abandoned=rng.random() < 0.3)
    return writer.records


@pytest.mark.parametrize("many", [250, pytest.param(8000, marks=pytest.mark.campaign)])
def test_sessions_under_monitors_are_judged_alike(many: int) -> None:
    data = artifact_bytes(library.compile_text(MONITORED))
    rng, checked = random.Random(11), check(data)
    ledgers = [sealed(monitored(rng, checked)) for _ in range(many)]
    found, lines = differing(data, ledgers)
    assert found == []
    assert lines["VALID: Conformant"] > 10 and lines["REJECTED: a monitor"] > 20
    assert not any(line.startswith("DECLINED") for line in lines), lines


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("unknown hidden", 3),
        ("left shown", 4),
        *[pytest.param(name, 1, marks=pytest.mark.campaign) for name in NAMES],
    ],
)
def test_forged_fields_of_the_desk_are_judged_alike(name: str, step: int) -> None:
    """Open arguments, hidden and shown, and monitors."""
    data = build(desk_core(), desk_plans(3))
    records = list(shape(name))
    found, lines = differing(data, [sealed(records), *forgeries(records, step)])
    assert found == []
    assert lines["VALID: Conformant"] + lines["VALID: ConformantPrefix"] > 2
    assert sum(lines.values()) > 4 * lines["DECLINED: values"]


FORBIDDING = """grammar g version "1"

tool go(to: a | b) { errors mean failed }
tool come gives (how: well | badly) { errors mean failed }
tool stay

plan = (come | go | stay){0,5} - any* go(to=b) any* come(how=badly) any*

before stay require no go(to = a)
before go(to = b) require no come(how = badly)
"""


@pytest.mark.parametrize("many", [200, pytest.param(4000, marks=pytest.mark.campaign)])
def test_errors_that_were_read_are_judged_alike(many: int) -> None:
    """They count as done for a forbid of two patterns; one of neighbours is declined."""
    rng, ledgers = random.Random(3), []
    for text in (
        FORBIDDING,
        FORBIDDING + "before stay require no go(to = b) since any - go(to = b)\n",
    ):
        data = artifact_bytes(library.compile_text(text))
        checked = check(data)
        for _ in range(many):
            writer = SessionWriter(checked)
            for _ in range(rng.randint(1, 5)):
                tool = rng.choice(["go", "come", "stay"])
                writer.call(tool, {"to": rng.choice("ab")} if tool == "go" else {})
                if tool != "stay" and rng.random() < 0.5:
                    writer.failed()
                    if rng.random() < 0.8:
                        writer.records[-1]["answered"] = True
                elif rng.random() < 0.2:
                    writer.unknown()
                else:
                    writer.done(
                        **({"how": rng.choice(["well", "badly"])} if tool == "come" else {})
                    )
            writer.end(abandoned=rng.random() < 0.5)
            ledgers.append(writer.ledger())
        found, lines = differing(data, ledgers)
        assert found == []
        declined = sum(count for line, count in lines.items() if line.startswith("DECLINED"))
        assert (declined > many // 4) == ("go(to = b) stay" in text), lines
        if not declined:
            assert lines["REJECTED: a forbid, and an error that was read"] > 5, lines
            assert lines["VALID: Conformant"] > 5, lines
        ledgers.clear()
