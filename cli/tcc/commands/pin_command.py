"""``tcc pin``: records which artifacts, made from which sources, are in use."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import click
from blake3 import blake3

from tcc import screen
from tcc.files import is_regular
from tcc.findings import Place, ReportedFinding, as_object, print_found
from tcc.opening import refusing, require_artifact, writing
from tcc.options import chosen, format_option, input_option, json_option, lock_option
from tcc.screen import FINDINGS
from tcc_certs.errors import clip, is_plain
from tcc_certs.policy.reader import core_bytes
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.outputs import write_whole
from tcc_runtime.mcp.wire import MalformedMessage, read_json

NAME = "tcc.lock"
_SCHEMA = "tcc.lock/2"
_NAMED = ("digest", "grammar", "version")
# A pin has both members or neither.
_SOURCE = ("source", "source_core")
_MOST_BYTES = 16 << 20
_SHOWN = 4
_HEX = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """An artifact that is approved for use.

    Attributes:
        digest: the digest of the artifact, hex.
        grammar, version: the name and the version of its grammar.
        source: the path of its grammar, relative to the lock's folder; None if it has no source.
        source_core: the digest of the source's core, hex; None if it has no source.
    """

    digest: str
    grammar: str
    version: str
    source: str | None = None
    source_core: str | None = None

    @property
    def fields(self) -> dict[str, str]:
        """The members of the pin in a lock; members of the source only if there is one."""
        named = {name: getattr(self, name) for name in (*_NAMED, *_SOURCE)}
        return {name: value for name, value in named.items() if value is not None}


class LockError(Exception):
    """A lock is missing or malformed, or cannot contain a path.

    Args:
        path: the file of the lock.
        what: the problem.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.found = ReportedFinding(code="TCC841", message=what, place=Place(file=str(path)))
        super().__init__(f"TCC841: {path}: {what}")


class SourceError(Exception):
    """A source is missing, has errors, or differs from the source of its artifact.

    Args:
        what: the problem.
    """


def pin_of(artifact: Artifact, lock: Path, source: str | None) -> Pin:
    """Return the pin of an artifact and of its source.

    Args:
        source: the path of the source, relative to the lock's folder; None for no source.

    Raises:
        SourceError: the source is missing, has errors, or the artifact was not made from it.
    """
    manifest = artifact.manifest
    core = None if source is None else _core_of(lock.parent / source)
    held = bytes(artifact.file.columns["core"].data)
    if core not in (None, held):
        raise SourceError(f"it says another thing: {_differing(held, core)}")
    return Pin(
        digest=artifact.digest.hex(), grammar=manifest.grammar, version=manifest.version,
        source=source, source_core=None if core is None else _digest(core),
    )  # fmt: skip


def _core_of(source: Path) -> bytes:
    """Compile a grammar as far as its core, and return the bytes of the core.

    Raises:
        SourceError: the grammar is missing or has errors.
    """
    from tcc_compiler.pipeline import read_source

    if not is_regular(source):
        raise SourceError("it is gone")
    front = read_source(source)
    if front.core is None:
        first = next((one for one in front.diagnostics if one.severity == "error"), None)
        said = "" if first is None else f": {first.code}: {clip(first.message)}"
        raise SourceError(f"it has errors{said}")
    return core_bytes(front.core)


def _digest(core: bytes) -> str:
    return blake3(core).hexdigest()


def _differing(held: bytes, now: bytes) -> str:
    """Describe how the cores of an artifact and its source differ; the text is never empty.

    It lists up to four statements or named parts.  If none differs, it states both cores' digests.
    """
    from tcc_runtime.analysis.comparison import core_changes

    said = []
    for change in core_changes(held, now):
        name = "" if change.of == "statement" else f"{change.of} {change.name}: "
        was, is_now = (clip(text or "nothing") for text in (change.old, change.new))
        said.append(f"{name}the artifact has {was}, the source {is_now}")
    if not said:
        return f"the artifact's core is {_digest(held)}, the source's {_digest(now)}"
    more = [f"and {len(said) - _SHOWN} more"] if len(said) > _SHOWN else []
    return "; ".join([*said[:_SHOWN], *more])


def name_in(lock: Path, artifact: Path) -> str:
    """Return the name of an artifact or a source in a lock: its path from the lock's folder.

    Raises:
        LockError: the file is not below the lock's folder, or its name has hidden characters.
    """
    folder = os.path.abspath(lock.parent)  # noqa: PTH100 - links are not followed
    name = PurePosixPath(Path(os.path.relpath(artifact, folder)).as_posix())
    if not _is_name(str(name)):
        raise LockError(lock, f"{artifact} is not below the folder of the lock")
    return str(name)


def lock_text(pins: Mapping[str, Pin]) -> str:
    """Return the text of a lock with these pins."""
    artifacts = {name: pin.fields for name, pin in pins.items()}
    document = {"schema": _SCHEMA, "artifacts": artifacts}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def read_pins(path: Path) -> dict[str, Pin]:
    """Read the pins of a lock, by artifact name.

    Raises:
        LockError: the lock is missing or malformed.
    """
    try:
        if not is_regular(path):
            raise LockError(path, "there is no such file: `tcc pin ARTIFACT` makes it")
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise LockError(path, f"larger than {_MOST_BYTES} bytes")
        document = read_json(data)
    except OSError as error:
        raise LockError(path, f"it cannot be read: {error.strerror or error}") from None
    except MalformedMessage as error:
        raise LockError(path, f"no lock of artifacts: {error}") from None
    return _pins(path, document)


def _pins(path: Path, document: object) -> dict[str, Pin]:
    if not isinstance(document, dict) or document.keys() != {"schema", "artifacts"}:
        raise LockError(path, "an object with schema and artifacts is needed")
    if document["schema"] != _SCHEMA:
        raise LockError(path, f"the schema {_SCHEMA} is needed")
    artifacts = document["artifacts"]
    if not isinstance(artifacts, dict):
        raise LockError(path, "artifacts: an object is needed")
    return {name: _pin(path, name, pin) for name, pin in artifacts.items()}


def _pin(path: Path, name: str, pin: object) -> Pin:
    shown = json.dumps(name[:200])
    if not _is_name(name):
        raise LockError(path, f"{shown} is no path below the folder of the lock")
    if not isinstance(pin, dict) or pin.keys() not in (set(_NAMED), {*_NAMED, *_SOURCE}):
        wanted = "digest, grammar and version; source and source_core, both or neither"
        raise LockError(path, f"{shown}: a pin has {wanted}")
    if not all(isinstance(value, str) for value in pin.values()):
        raise LockError(path, f"{shown}: digest, grammar, version and source are texts")
    for member in ("digest", "source_core"):
        if _HEX.fullmatch(pin.get(member, "0" * 64)) is None:
            raise LockError(path, f"{shown}: a digest is 64 lower-case hexadecimal digits")
    if not _is_name(pin.get("source", name)):
        raise LockError(path, f"{shown}: source: no path below the folder of the lock")
    return Pin(**pin)


def _is_name(name: str) -> bool:
    """Return whether a name is a normalized path below a folder, without hidden characters."""
    parts = name.split("/")
    return is_plain(name) and not any(part in ("", ".", "..") for part in parts)


def unpinned(lock: Path, path: Path) -> ReportedFinding:
    """Return the finding about an artifact that has no pin."""
    hint = f"look at it, then: tcc pin {path}"
    said = f"{lock} has no pin for it"
    return ReportedFinding(code="TCC842", message=said, place=Place(file=str(path)), hint=hint)


def check_pin(
    lock: Path, name: str, path: Path, pins: Mapping[str, Pin], there: Pin
) -> list[ReportedFinding]:
    """Return a finding if the artifact at `path` differs from its pin, else no findings.

    Args:
        name: the name of the artifact in the lock.
        there: the pin that the artifact would have now.
    """
    pin = pins.get(name)
    if pin is None:
        return [unpinned(lock, path)]
    expected: Sequence[tuple[str, str, str]] = (
        ("digest", pin.digest, there.digest),
        ("grammar", pin.grammar, there.grammar),
        ("version", pin.version, there.version),
    )
    wrong = [f"{what} pinned {was}, found {now}" for what, was, now in expected if was != now]
    if not wrong:
        return []
    said = f"it is not the artifact that {lock} pins as {name}: {'; '.join(wrong)}"
    place = Place(file=str(path))
    return [ReportedFinding(code="TCC843", message=said, place=place, hint=_reviewed(path))]


def _reviewed(path: Path) -> str:
    """Return a hint: how to see the changes, and how to pin the artifact."""
    return (
        f"see with `tcc diff OLD {path}` what changed (OLD: the pinned one), then: tcc pin {path}"
    )


def check_source(lock: Path, pin: Pin | None, artifact: Path, held: bytes) -> list[ReportedFinding]:
    """Return a finding if the pinned source differs from the pin or from the artifact.

    The lock has only the digest of the pinned core, so the finding cannot list its statements.

    Args:
        held: the bytes of the artifact's core.
    """
    if pin is None or pin.source is None:
        return []
    source = lock.parent / pin.source
    hint = f"compile {artifact} again; {_reviewed(artifact)}"
    try:
        now = _core_of(source)
    except SourceError as error:
        said = f"the source of {artifact}: {error}"
    else:
        is_pinned = _digest(now) == pin.source_core
        if is_pinned and now == held:
            return []
        wrong = []
        if now != held:
            wrong.append(f"{artifact} was not compiled from it: {_differing(held, now)}")
        else:
            hint = _reviewed(artifact)
        if not is_pinned:
            wrong.append(
                f"it is not the source that {lock} pins for {artifact}: source_core pinned "
                f"{pin.source_core}, found {_digest(now)}"
            )
        said = "; ".join(wrong)
    return [ReportedFinding(code="TCC845", message=said, place=Place(file=str(source)), hint=hint)]


def missing(lock: Path, path: Path) -> ReportedFinding:
    """Return the finding about a pinned artifact that does not exist."""
    hint = f"put it there, or: tcc pin --remove {path}"
    said = f"{lock} has a pin for it, and there is no such file"
    return ReportedFinding(code="TCC844", message=said, place=Place(file=str(path)), hint=hint)


@click.command("pin")
@click.argument(
    "artifacts",
    nargs=-1,
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="ARTIFACT...",
)
@lock_option("file of pins")
@click.option("--remove", is_flag=True, help="remove the pins of these paths")
@input_option(
    "--source",
    "grammar that ARTIFACT has to be made from; by default the pinned one, or the one beside it",
)
@click.option("--no-source", is_flag=True, help="pin ARTIFACT without a source")
@format_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    artifacts: tuple[Path, ...],
    lock: Path,
    remove: bool,
    source: Path | None,
    no_source: bool,
    output_format: str,
    as_json: bool,
) -> None:
    """Pin each ARTIFACT: write its path, digest, grammar, version and source to a lock.

    Every certificate is checked first. The source of A.tcca is the grammar A.tcg beside it, if
    there is one. If an artifact was made from another source, nothing is written (TCC845): compile
    it again, or pin it with --no-source. Other pins of the lock stay. `tcc check --locked` then
    rejects what differs from its pin.
    """
    shown = chosen(output_format, as_json)
    if (source is not None) + no_source + remove > 1:
        raise click.UsageError("--source, --no-source and --remove exclude each other", ctx)
    if source is not None and len(artifacts) != 1:
        raise click.UsageError("--source is for one artifact", ctx)
    try:
        there = lock.exists() or lock.is_symlink()
        pins = read_pins(lock) if there or remove else {}
        changed = [name_in(lock, path) for path in artifacts]
        given = None if source is None else name_in(lock, source)
    except LockError as error:
        _refuse(error.found, str(error), shown)
        ctx.exit(FINDINGS)
    for name, path in zip(changed, artifacts, strict=True):
        if remove:
            if pins.pop(name, None) is None:
                raise click.UsageError(f"{lock} has no pin for {name}", ctx)
        else:
            held = None if no_source else given or _source_of(name, path, lock, pins.get(name))
            try:
                pins[name] = _pinned(path, lock, held)
            except SourceError as error:
                said = f"the source of {path}: {error}"
                hint = "compile it anew, or: --source G, --no-source"
                where = Place(file=str(lock.parent / (held or "")))
                _refuse(
                    ReportedFinding(code="TCC845", message=said, place=where, hint=hint),
                    f"TCC845: {where.file}: {said}; {hint}", shown,
                )  # fmt: skip
                ctx.exit(FINDINGS)
    with writing(lock):
        write_whole(lock, lock_text(pins).encode())
    _show(lock, changed, pins, shown)


def _source_of(name: str, path: Path, lock: Path, before: Pin | None) -> str | None:
    """Return the source of an artifact if the user names none, or None.

    That is the pinned source, else a regular file with the artifact's name and the suffix .tcg.
    """
    if before is not None and before.source is not None:
        return before.source
    beside = path.with_suffix(".tcg")
    return name_in(lock, beside) if beside != path and is_regular(beside) else None


def _pinned(path: Path, lock: Path, source: str | None) -> Pin:
    try:
        with refusing(path):
            require_artifact(path)
            return pin_of(load(path), lock, source)
    except OSError as error:
        raise click.ClickException(f"cannot read {path}: {error.strerror or error}") from None


def _refuse(found: ReportedFinding, said: str, shown: str) -> None:
    screen.say(said, err=True)
    if shown == "json":
        from tcc.outputs.verdicts import ErrorOutput

        screen.print_output(ErrorOutput(error=said, diagnostics=[as_object(found)]))
    elif shown != "text":
        print_found([found], shown)


def _show(lock: Path, changed: list[str], pins: dict[str, Pin], shown: str) -> None:
    if shown == "json":
        fields = {name: pin.fields for name, pin in sorted(pins.items())}
        from tcc.outputs.verdicts import PinOutput

        screen.print_output(PinOutput(lock=str(lock), artifacts=fields))
    elif shown != "text":
        print_found((), shown)
    else:
        for name in changed:
            pin = pins.get(name)
            told = f"{pin.grammar} {pin.version} {pin.digest}" if pin else "no longer pinned"
            of = f", source {pin.source}" if pin and pin.source else ", no source" if pin else ""
            screen.say(f"{name}: {told}{of}")
        screen.good(f"wrote {lock}, {len(pins)} pinned")
