"""Doing a plan: what is called, with what, in which order, and where it stops."""

from __future__ import annotations

import asyncio
import threading
import time
from itertools import count

import pytest

import tcc as library
from tcc_runtime.errors import BindingError, SettingsError
from tcc_runtime.executor.course import PlanStep
from tests.executor.grammars import ARGUMENTS, PLAIN, SEED, SHOP, Log, plain, shop

YES, NO = {"answer": "yes"}, {"answer": "no"}


def test_the_best_plan_is_done_to_its_end() -> None:
    artifact, log = plain(), Log()
    run = library.search(artifact, seed=SEED)
    gate = library.Gate(artifact)
    found = library.execute(run, log.tools(artifact), gate=gate)
    assert (found.stop, found.finished) == ("finished", True)
    assert tuple(made.call for made in found.calls) == run.plans[0].calls
    assert log.names == [call.partition("(")[0] for call in run.plans[0].calls]
    assert log.calls[0][1] == {"k": int(run.plans[0].calls[0][4])}
    assert found.runs == (run,)
    with pytest.raises(library.Refused, match="R303"):
        library.execute(None, log.tools(artifact), gate=gate)


def test_an_answer_that_was_not_assumed_begins_a_new_search() -> None:
    for answer in (YES, NO):
        artifact, log = shop(), Log(check=answer)
        gate = library.Gate(artifact)
        run = next(
            found
            for found in (library.search(artifact, seed=bytes([n]) * 32) for n in count())
            if "answer=yes" in found.plans[0].calls[1]
        )
        found = library.execute(run, log.tools(artifact), gate=gate, arguments=ARGUMENTS)
        assert found.stop == "finished"
        if answer is YES:
            assert log.names == ["find", "check", "refund", "tell"] and found.runs == (run,)
            assert log.calls[2][1].items() >= ARGUMENTS["refund"].items()
        else:
            assert log.names == ["find", "check", "escalate"]
            assert len(found.runs) == 2 and found.runs[1].after[1].endswith("answer=no)")
            assert found.runs[1].claim_type == "RunWiseExact"
        assert found.results[2] == answer


def test_an_answer_that_nobody_foresees_ends_it() -> None:
    artifact = shop()
    for answer in ({"answer": "maybe"}, None, {}):
        log = Log(check=answer)
        gate = library.Gate(artifact)
        found = library.execute(None, log.tools(artifact), gate=gate, seed=bytes([1]) * 32)
        if "check" in log.names:
            assert (found.stop, log.names[-1]) == ("unforeseen", "check")
            assert found.reason.startswith("call 2: check(")


def test_a_call_that_failed_is_searched_around_and_not_for_ever() -> None:
    artifact, failures = plain(), count()

    def second_time(_: object) -> None:
        if next(failures) == 0:
            raise library.Failed("not today")

    log = Log(b=second_time)
    found = library.execute(None, log.tools(artifact), gate=library.Gate(artifact))
    assert found.stop == "finished"
    assert [made.outcome for made in found.calls[:3]] == ["done", "failed", "done"]
    assert len(found.runs) == 2 and found.runs[1].after == (found.calls[0].call,)

    def never(_: object) -> None:
        raise library.Failed("never")

    log = Log(b=never)
    gate = library.Gate(artifact)
    found = library.execute(None, log.tools(artifact), gate=gate, retries=2)
    assert (found.stop, log.names) == ("failed", ["a", "b", "b", "b"])
    assert found.reason == "3 calls in a row have failed"


def test_an_exception_leaves_the_outcome_unknown_and_the_owner_resolves_it() -> None:
    artifact = plain()
    attempts = count()

    def once(_: object) -> None:
        if next(attempts) == 0:
            raise OSError("the line is dead")

    log, gate = Log(b=once), library.Gate(artifact)
    found = library.execute(None, log.tools(artifact), gate=gate)
    assert (found.stop, log.names) == ("unknown", ["a", "b"])
    assert found.reason == "call 2, b: OSError: the line is dead"
    # It is not made again by taking it up.
    found = library.execute(None, log.tools(artifact), gate=gate)
    assert (found.stop, log.names) == ("unknown", ["a", "b"])
    found = library.execute(None, log.tools(artifact), gate=gate, resolve=lambda made: "failed")
    assert found.stop == "finished" and log.names[:3] == ["a", "b", "b"]


def test_errors_that_mean_failed_are_failures() -> None:
    artifact = library.compile_text(PLAIN.replace("tool b {", "tool b { errors mean failed"))
    attempts = count()

    def once(_: object) -> None:
        if next(attempts) == 0:
            raise OSError("refused")

    log = Log(b=once)
    found = library.execute(None, log.tools(artifact), gate=library.Gate(artifact))
    assert found.stop == "finished" and [made.outcome for made in found.calls[:2]] == [
        "done",
        "failed",
    ]


@pytest.mark.parametrize(
    ("text", "stop"), [("Error: x" + "x" * (1 << 21), "unknown"), ("", "finished")]
)
def test_texts_that_say_an_error_are_failures(text: str, stop: str) -> None:
    artifact = library.compile_text(
        PLAIN.replace("tool b {", 'tool b { errors mean failed ~ "Error: .*"')
    )
    attempts = count()
    log = Log()
    tools = {**log.tools(artifact)}
    answer = tools["b"]

    def once(**arguments: object) -> object:
        answer(**arguments)
        return (text or "Error: x") if next(attempts) == 0 else None

    found = library.execute(None, {**tools, "b": once}, gate=library.Gate(artifact))
    assert found.stop == stop
    assert found.calls[1].outcome == ("unknown" if text else "failed")


def test_a_deadline_leaves_the_outcome_unknown_and_nothing_waits() -> None:
    artifact, release = plain(), threading.Event()
    log = Log(b=lambda _: release.wait(30))
    started = time.monotonic()
    found = library.execute(
        None, log.tools(artifact), gate=library.Gate(artifact), deadline={"b": 0.05}
    )
    assert time.monotonic() - started < 5
    assert (found.stop, found.reason) == ("unknown", "call 2, b: the deadline has passed")
    release.set()
    for wrong in (0, -1, float("inf"), float("nan")):
        with pytest.raises(SettingsError, match="deadline"):
            library.execute(None, {}, gate=library.Gate(artifact), deadline=wrong)


def test_a_tool_that_takes_the_key_is_called_again_with_it() -> None:
    artifact, keys = plain(), []

    def b(*, idempotency_key: str) -> str:
        keys.append(idempotency_key)
        if len(keys) < 3:
            raise OSError("the line is dead")
        return "at last"

    log, gate = Log(), library.Gate(artifact)
    found = library.execute(None, {**log.tools(artifact), "b": b}, gate=gate)
    assert found.stop == "finished" and found.results[2] == "at last"
    assert keys == [gate.key_of(2)] * 3
    assert [made.outcome for made in found.calls[:2]] == ["done", "done"]

    keys.clear()
    keys.extend(["-"] * -100)
    stuck = Log(b=lambda _: 1 / 0)
    gate = library.Gate(artifact)
    found = library.execute(None, stuck.tools(artifact), gate=gate, once=["b"], retries=2)
    assert (found.stop, stuck.names) == ("unknown", ["a", "b", "b", "b"])


def test_other_open_arguments_are_another_call() -> None:
    artifact = shop()
    amounts = count(3)

    def arguments(step: PlanStep) -> dict[str, object]:
        assert step.opened == (() if step.tool != "refund" else ("order", "amount", "note"))
        return {} if step.tool != "refund" else {"order": "ord-1", "amount": next(amounts)}

    def refund(idempotency_key: str, **_: object) -> None:
        raise OSError("the line is dead")

    log, gate = Log(check=YES), library.Gate(artifact)
    tools = {**log.tools(artifact), "refund": refund}
    run = next(
        found
        for found in (library.search(artifact, seed=bytes([n]) * 32) for n in count())
        if "answer=yes" in found.plans[0].calls[1]
    )
    found = library.execute(run, tools, gate=gate, arguments=arguments)
    assert found.stop == "unknown" and "have changed" in found.reason
    assert next(amounts) == 5


def test_arguments_that_are_none_are_refused_before_the_call() -> None:
    artifact = shop()
    run = next(
        found
        for found in (library.search(artifact, seed=bytes([n]) * 32) for n in count())
        if "answer=yes" in found.plans[0].calls[1]
    )
    for opened, code in (
        ({"order": "ord-1"}, "R103"),
        ({"order": "x", "amount": 1}, "R105"),
        ({"order": "ord-1", "amount": 501}, "R105"),
        ({"order": "ord-1", "amount": float("nan")}, "R106"),
    ):
        log = Log(check=YES)
        with pytest.raises(library.Refused) as refused:
            library.execute(
                run, log.tools(artifact), gate=library.Gate(artifact), arguments={"refund": opened}
            )
        assert refused.value.code == code and log.names == ["find", "check"]
    for source, said in (
        (lambda step: {"part": "full"}, "has no open argument 'part'|has no open argument"),
        (lambda step: [1], "open arguments are a mapping, not list"),
    ):
        with pytest.raises(TypeError, match=said):
            library.execute(
                run, Log().tools(artifact), gate=library.Gate(artifact), arguments=source
            )


def test_what_a_monitor_forbids_another_plan_of_the_run_goes_around() -> None:
    artifact = library.compile_text(
        """grammar pay version "1"

tool send(to: home | shop, amount: number 0 .. 100) { cost 0.1 }
tool tell { cost 0.1 }
tool stop { cost 3 }

plan = send{0,2} (tell | stop)

limit sum(send.amount) <= 5
""".replace("tool stop", "tool halt").replace("| stop", "| halt")
    )
    log, gate = Log(), library.Gate(artifact)
    run = next(
        found
        for found in (library.search(artifact, seed=bytes([n]) * 32, top=40) for n in count())
        if len(found.plans[0].calls) == 3
    )
    amount = {"send": {"amount": 4}}
    found = library.execute(run, log.tools(artifact), gate=gate, arguments=amount)
    assert found.stop == "finished" and log.names.count("send") == 1
    alone = library.search(artifact, seed=SEED, after=run.plans[0].calls[:1])
    assert alone.plans
    gate = library.Gate(artifact)
    only = library.search(artifact, seed=bytes.fromhex(run.seed), top=1)
    found = library.execute(only, log.tools(artifact), gate=gate, arguments=amount)
    assert found.stop == "refused" and found.reason.startswith("the gate refuses send(")


def test_a_run_of_another_session_is_refused() -> None:
    artifact = plain()
    run = library.search(artifact, seed=SEED, after=["a(k=1)"])
    with pytest.raises(ValueError, match="begins after calls that this session has not made"):
        library.execute(run, {}, gate=library.Gate(artifact))
    gate = library.Gate(artifact)
    with gate.call("a", {"k": 1}) as permit:
        permit.done()
    log = Log()
    found = library.execute(run, log.tools(artifact), gate=gate)
    assert found.stop == "finished" and found.runs[0] == run and log.names[0] == "b"


def test_tasks_and_coroutines(event_loop_policy=None) -> None:
    artifact, seen = plain(), []

    async def b() -> str:
        await asyncio.sleep(0)
        seen.append("b")
        return "done"

    async def slow() -> None:
        await asyncio.sleep(30)

    async def work() -> None:
        log = Log()
        tools = {**log.tools(artifact), "b": b}
        found = await library.execute_in_task(None, tools, gate=library.Gate(artifact))
        assert found.stop == "finished" and seen == ["b"] and found.results[2] == "done"
        tools = {**log.tools(artifact), "b": slow}
        found = await library.execute_in_task(
            None, tools, gate=library.Gate(artifact), deadline=0.05
        )
        assert found.stop == "unknown"
        gate = library.Gate(artifact)
        task = asyncio.create_task(library.execute_in_task(None, tools, gate=gate))
        while not gate.history or gate.history[-1].call != "b":
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [made.outcome for made in gate.history] == ["done", "unknown"]

    asyncio.run(work())


def test_what_is_not_bound_is_said_before_it_is_called() -> None:
    artifact, log = plain(), Log()
    gate = library.Gate(artifact)
    tools = log.tools(artifact)
    del tools["b"]
    with pytest.raises(BindingError, match="'b': give a function for it"):
        library.execute(None, tools, gate=gate)
    assert (gate.history, log.calls) == ((), [])
    with pytest.raises(BindingError, match="'z': the grammar has no such tool"):
        library.execute(None, {"z": print}, gate=library.Gate(artifact))
    with pytest.raises(BindingError, match="'a': int is nothing to call"):
        library.execute(None, {"a": 1}, gate=library.Gate(artifact))


def test_the_grammar_binds_python_functions() -> None:
    bound = PLAIN.replace("{ cost 0.2 }", '{ cost 0.2 bind python "gc:collect" }')
    artifact, log = library.compile_text(bound), Log()
    tools = log.tools(artifact)
    del tools["b"]
    found = library.execute(None, tools, gate=library.Gate(artifact))
    assert found.stop == "finished" and isinstance(found.results[2], int)
    for target, said in (("no_such_module:f", "no module"), ("gc:no", "is no function")):
        wrong = library.compile_text(bound.replace("gc:collect", target))
        with pytest.raises(BindingError, match=said):
            library.execute(None, tools, gate=library.Gate(wrong))


def test_a_plan_stops_at_a_call_that_waits_for_a_person_and_goes_on_after_the_approval() -> None:
    artifact = library.compile_text(
        'grammar g version "1"\ntool look\ntool pay(amount: number)\nplan = look pay\n'
        'before pay ask "lead"\n'
    )
    made: list[str] = []
    tools = {"look": lambda: made.append("look"), "pay": lambda amount: made.append("pay")}
    gate = library.Gate(artifact)

    def execute() -> library.Execution:
        arguments = {"pay": {"amount": 5}}
        return library.execute(None, tools, gate=gate, seed=SEED, arguments=arguments)

    for _ in range(2):
        found = execute()
        assert (found.stop, made) == ("pending", ["look"])
        assert "a person has to decide first: before pay ask" in found.reason
    gate.approve(gate.pending[0].id, who="Ann")
    assert (execute().stop, made) == ("finished", ["look", "pay"])


def test_a_call_inside_a_tool_is_refused() -> None:
    artifact = plain()
    gate = library.Gate(artifact)
    seen = []

    def b(**_: object) -> None:
        try:
            with gate.call("c"):
                pass
        except library.Refused as refused:
            seen.append(refused.code)

    library.execute(None, {**Log().tools(artifact), "b": b}, gate=gate)
    assert seen == ["R305"]


def test_the_text_is_what_it_was() -> None:
    assert library.compile_text(SHOP).digest == shop().digest


def test_a_tool_gets_what_was_decided_on_whoever_changes_the_callers_objects_meanwhile() -> None:
    text = """grammar g version "1"

tool put(what: json max 100)

plan = put
"""
    given = {"to": [{"name": "ann"}], "all": {"of": [1, 2]}}
    got = []

    def put(what: object) -> None:
        got.append(what)

    class Changing(library.Gate):
        def enter_in_task(self, permit: object) -> object:
            decided = super().enter_in_task(permit)

            async def changed() -> None:
                await decided
                given["to"][0]["name"] = "bob"
                given["all"]["of"].append(3)

            return changed()

    gate = Changing(library.compile_text(text), key=SEED)
    found = library.execute(
        None, {"put": put}, gate=gate, arguments={"put": {"what": given}}, seed=SEED
    )
    assert found.finished and given["to"] == [{"name": "bob"}]
    assert got == [{"to": [{"name": "ann"}], "all": {"of": [1, 2]}}]
    assert gate.is_call(1, "put", {"what": got[0]})
