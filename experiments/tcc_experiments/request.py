"""One private request from end to end: privatised input, certified search, models, budget, verdict.

A person's digit is sketched and privatised before anything else sees it; what follows depends on
the noisy sketch alone.  A plan is searched, with costs asked for on the way, and done through a
gate: models make the calls, one of them with an adapter that was trained under differential
privacy, and asks and calls draw on one budget.  Where a model is not as sure as the plan assumed,
another search goes on.  It too is post-processing of the noisy sketch: its ledger states the same
epsilon as the first.  Each request ends in one ledger of its session and one verdict.
Cost: some 30 ms a request, and seconds once to train the adapter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tcc_certs.formats.container import write_container
from tcc_certs.kernel import check
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.replay import validate as replay
from tcc_certs.session.validation import validate as go_through
from tcc_experiments.digits import (
    ADAPTER,
    DELTA_TRAIN,
    EPSILON_TRAIN,
    NOISE_MULTIPLIER,
    NORM,
    RATE,
    STEPS,
    digits,
    prototypes,
    read_adapter,
    scores,
    write_adapter,
)
from tcc_experiments.evidence import NotShown
from tcc_experiments.graphs import compiled_file
from tcc_experiments.model import (
    ClaimFinding,
    ClaimVerdict,
    Conclusion,
    Experiment,
    Part,
    ResultTable,
    Row,
    Size,
    random_of,
    seed_of,
)
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.adapters.registry import folder_id, read_registry
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.executor.execute import Execution, execute
from tcc_runtime.gate.gate import Gate
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.quotes import Answer, Question, Quoter
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

DEVIATIONS: Final = (10, 20, 40)  # of the noise on each number of a sketch
DELTA: Final = "0.000001"
PRICE_CAP: Final = 60
REQUESTS: Final = {Size.QUICK: 4, Size.FULL: 100}
_SURE: Final = 1 << 15  # how far the best class has to be above the next: half a unit
_BLOCK: Final = 50


def parts(size: Size) -> list[Part]:
    """The models by themselves, and blocks of requests for each deviation."""
    requests = REQUESTS[size]
    blocks = [
        {"deviation": deviation, "from": at, "to": min(at + _BLOCK, requests)}
        for deviation in DEVIATIONS
        for at in range(0, requests, _BLOCK)
    ]
    return [{"models": 1}, *blocks]


def work(part: Part) -> list[Row]:
    """What became of each request.

    Raises:
        MissingExtra: scikit-learn or safetensors is not installed.
        NotShown: a ledger does not validate.
    """
    artifact = compiled_file("digits.tcg", beta="2", tilt=8)
    with trained() as (adapters, folder), TemporaryDirectory() as made:
        models = {"prototypes": prototypes(), "tuned": prototypes() + read_adapter(folder)}
        if "models" in part:
            return _alone(models)
        return [
            _answered(artifact, adapters, models, int(part["deviation"]), number, Path(made))
            for number in range(int(part["from"]), int(part["to"]))
        ]


@contextmanager
def trained() -> Iterator[tuple[tuple[Adapter, ...], Path]]:
    """The registry that has the adapter, held to its files and to its training, and its folder.

    Raises:
        MissingExtra: scikit-learn or safetensors is not installed.
    """
    with TemporaryDirectory() as made:
        folder = write_adapter(Path(made) / ADAPTER)
        lines = [
            'format = "tcc.adapters/1.0"',
            f'[adapters."{ADAPTER}"]',
            f'id = "{folder_id(folder)}"',
            'tier = "small"',
            'dp_cert_id = "digits-dp-sgd"',
            f'eps_train = "{EPSILON_TRAIN}"',
            f'delta_train = "{DELTA_TRAIN}"',
            f'folder = "{ADAPTER}"',
            f'[adapters."{ADAPTER}".training]',
            'mechanism = "subsampled_gaussian"',
            f'noise_multiplier = "{NOISE_MULTIPLIER}"',
            f'sampling_rate = "{RATE}"',
            f"steps = {STEPS}",
        ]
        registry = Path(made) / "adapters.toml"
        registry.write_text("\n".join(lines) + "\n")
        yield read_registry(registry), folder


def _alone(models: Mapping[str, Any]) -> list[Row]:
    """How many of the sketches each model reads rightly by itself, without noise and with it."""
    import numpy as np

    known = digits()
    due, rows = known.classes[known.tested], list[Row]()
    for deviation in (0, *DEVIATIONS):
        sketches = np.stack([noisy(number, deviation) for number in range(len(due))])
        rows += [
            {
                "model": model,
                "deviation": deviation,
                "sketches": len(due),
                "right": int((scores(weights, sketches).argmax(axis=1) == due).sum()),
            }
            for model, weights in models.items()
        ]
    return rows


class Desk:
    """The tools over one noisy sketch; nothing here has seen the image.

    Args:
        sketch: 17 integers, the last of them the constant input.
        models: the scores of each model, as a matrix.
    """

    def __init__(self, sketch: Any, models: Mapping[str, Any]) -> None:
        self._sketch, self._models = sketch, models
        self._votes: Any = 0
        self.digit: int | None = None

    def receive(self) -> None:
        """The sketch is there."""

    def sharpen(self, by: str) -> None:
        """Takes noise off: cuts numbers at the greatest that an image has, or shrinks all."""
        import numpy as np

        numbers = self._sketch[:16]
        self._sketch = np.append(
            np.clip(numbers, -NORM, NORM) if by == "clipping" else numbers * 3 // 4,
            self._sketch[16:],
        )

    def classify(self, model: str) -> dict[str, str]:
        """The scores of a model are added to those before; says whether one class is ahead."""
        self._votes = self._votes + scores(self._models[model], self._sketch[None, :])[0]
        best = sorted(self._votes.tolist())
        self.digit = int(self._votes.argmax())
        return {"sure": "yes" if best[-1] - best[-2] >= _SURE else "no"}

    def answer(self) -> int | None:
        """The digit."""
        return self.digit

    def give_up(self) -> None:
        """No digit."""
        self.digit = None


def noisy(number: int, deviation: int) -> Any:
    """The sketch of a request with Gaussian noise on it, rounded."""
    import numpy as np

    known = digits()
    rng = random_of("request/noise", deviation, number)
    noise = [round(rng.gauss(0, deviation)) for _ in range(16)]
    return known.sketches[known.tested][number] + np.array([*noise, 0])


def atom(deviation: int) -> dict[str, str]:
    """The mechanism: two sketches are at most twice the norm apart."""
    return {"mechanism": "gaussian", "sigma": str(deviation), "sensitivity": str(2 * NORM)}


def _answered(
    artifact: Artifact,
    adapters: Sequence[Adapter],
    models: Mapping[str, Any],
    deviation: int,
    number: int,
    folder: Path,
) -> Row:
    name = f"request/{deviation}/{number}"
    path = folder / f"{deviation}.{number}.session"
    desk = Desk(noisy(number, deviation), models)
    told: dict[str, Any] = {
        "atoms": atoms_of([atom(deviation)]),
        "delta": DELTA,
        "price_cap": PRICE_CAP,
        # Every other request is one of somebody who is in a hurry.
        **({"price_weight": "0.001", "latency_weight": "1"} if number % 2 else {}),
    }
    quoter = _Quoter(number)
    with Gate(artifact, ledger=path, durable=False, key=seed_of(name, 1)) as gate:
        done = execute(
            None,
            {tool.name: getattr(desk, tool.name) for tool in artifact.core.tools},
            gate=gate,
            seed=seed_of(name),
            quoter=quoter,
            adapters=adapters,
            **told,
        )
    session = _session(name, path, artifact)
    again = [_searched_again(name, run, artifact, quoter, adapters, told) for run in done.runs]
    return _row(deviation, number, desk, done, session, again)


def _session(name: str, path: Path, artifact: Artifact) -> str:
    """The claim of a session's ledger.

    Raises:
        NotShown: it does not validate.
    """
    found = go_through(
        path.read_bytes(), check(write_container(artifact.file.columns)), key=seed_of(name, 1)
    )
    if found.verdict:
        raise NotShown(f"{name}: {found.summary}")
    return str(found.claim_type)


def _searched_again(
    name: str,
    run: Run,
    artifact: Artifact,
    quoter: Quoter,
    adapters: Sequence[Adapter],
    told: Mapping[str, Any],
) -> tuple[str, int]:
    """A search of a request, made again with a ledger of its own: the epsilon stated, the asks.

    Raises:
        NotShown: it is another search, its ledger does not validate, or it claims nothing.
    """
    sink = MemorySink()
    settings = Settings(seed=bytes.fromhex(run.seed), after=run.after, **told)
    again = search(
        artifact, settings, Recorder(sink, started_ms=0), quoter=quoter, adapters=adapters
    )
    found = replay(sink.data, check(write_container(artifact.file.columns)))
    if found.verdict or not found.claim_upheld or again.plans != run.plans:
        raise NotShown(f"{name}: {found.summary}")
    stated = (found.privacy or {}).get("eps_delta")
    asks = sink.data.count(b'"kind":"refine"')
    return (str(stated["eps"]) if isinstance(stated, Mapping) else ""), asks


def _row(
    deviation: int,
    number: int,
    desk: Desk,
    done: Execution,
    claim: str,
    searches: Sequence[tuple[str, int]],
) -> Row:
    known, spent, epsilons = digits(), done.spent, [epsilon for epsilon, _ in searches]
    due = int(known.classes[known.tested][number])
    made = [call.model for call in done.calls]
    return {
        "deviation": deviation,
        "request": number,
        "epsilon": epsilons[0],
        "same_epsilon": len(set(epsilons)) == 1,
        "searches": len(done.runs),
        "expansions": sum(run.expansions for run in done.runs),
        "asks": sum(asks for _, asks in searches),
        "calls": len(made),
        "prototypes": made.count("prototypes"),
        "tuned": made.count("tuned"),
        "price": 0 if spent is None else spent.price,
        "stop": done.stop,
        "claim": claim,
        "digit": desk.digit,
        "right": desk.digit == due,
    }


class _Quoter:
    """The cost of sharpening: a range from the model that glances, the cost from the other."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __call__(self, question: Question) -> Answer:
        rng = random_of(f"request/{question.call}", self._number, question.occurrence)
        width = (question.high - question.low) // 4 if question.model == "glance" else 0
        low = rng.randint(question.low, question.high - width)
        return Answer(low=low, high=low + width, latency_ms=rng.randint(2, 6))


def conclude(rows: Sequence[Row]) -> Conclusion:
    """One line for each deviation, and what holds of all requests."""
    alone = [row for row in rows if "model" in row]
    rows = [row for row in rows if "model" not in row]
    table = [_summed([row for row in rows if row["deviation"] == one]) for one in DEVIATIONS]
    finished = sum(row["claim"] == "Conformant" for row in rows)
    later = sum(int(row["searches"] or 0) - 1 for row in rows)
    same = all(row["same_epsilon"] for row in rows)
    return Conclusion(
        tables=(
            ResultTable(name="request", caption=_CAPTION, rows=table),
            ResultTable(name="request_models", caption=_MODELS, rows=alone),
            ResultTable(name="request_each", caption="Each request.", rows=list(rows), shown=False),
        ),
        findings=(
            ClaimFinding(
                claim="routing is post-processing: what follows the privatised input spends "
                "nothing more (Sec. 7)",
                found=f"{later} later searches state the epsilon of the first"
                if same
                else "a later search states another epsilon than the first",
                verdict=ClaimVerdict.HOLDS if same else ClaimVerdict.FAILS,
                because="the tools have the noisy sketch and nothing else of the request",
            ),
            ClaimFinding(
                claim="(one verdict for searches, models, adapters and budget of a request)",
                found=f"{finished} of {len(rows)} sessions Conformant, every search certified",
                verdict=ClaimVerdict.EXTRA,
            ),
            ClaimFinding(
                claim="(what does the noise cost?)",
                found="; ".join(
                    f"noise {row['deviation']}: {row['right']} of {row['answered']} right"
                    for row in table
                ),
                verdict=ClaimVerdict.EXTRA,
                because="noise on a single image is dear: local privacy is paid for in accuracy",
            ),
        ),
    )


_MODELS = (
    "Sketches of no request's training, read by each model once: `tuned` has the adapter that was "
    f"trained by DP-SGD ({STEPS} steps, sampling rate {RATE}, noise multiplier {NOISE_MULTIPLIER}: "
    f"epsilon {EPSILON_TRAIN} at a delta of {DELTA_TRAIN})."
)
_CAPTION = (
    "`deviation`: of the noise on each of 16 numbers, of a norm of at most 40. `epsilon`: what "
    "every ledger of the request states, at a delta of 0.000001. `searches`, `expansions`, `asks`, "
    "`price`: means a request. `prototypes`, `tuned`: calls that the model made, without and with "
    "the adapter. `answered`: requests that did not end in `give_up`."
)


def _summed(mine: Sequence[Row]) -> Row:
    def mean(name: str) -> float:
        return round(sum(int(row[name] or 0) for row in mine) / len(mine), 2)

    return {
        "deviation": mine[0]["deviation"],
        "epsilon": mine[0]["epsilon"],
        "requests": len(mine),
        **{name: mean(name) for name in ("searches", "expansions", "asks", "price")},
        **{name: sum(int(row[name] or 0) for row in mine) for name in ("prototypes", "tuned")},
        "conformant": sum(row["claim"] == "Conformant" for row in mine),
        "answered": sum(row["digit"] is not None for row in mine),
        "right": sum(bool(row["right"]) for row in mine),
    }


EXPERIMENT = Experiment(
    name="request",
    title="A private request from end to end",
    paper=(),
    seconds={Size.QUICK: 15, Size.FULL: 60},
    revision=1,
    parts=parts,
    work=work,
    conclude=conclude,
    draw={},
)
