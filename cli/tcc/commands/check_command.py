"""``tcc check``: verifies certificates of artifacts, and compares artifacts with their pins.

An artifact is read once: the bytes that are compared with the pin are those that were checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from tcc import options, screen
from tcc.commands import pin_command
from tcc.describe import to_json
from tcc.files import is_regular
from tcc.findings import ReportedFinding, as_object, of_check, print_diagnostics, print_found
from tcc.library import CompileError, check
from tcc.library.second_checker import NoChecker
from tcc.opening import require_artifact
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.proof.check import check_proof, proof_document, proof_lines, read_proof
from tcc_certs.report import VERDICTS, CheckReport

if TYPE_CHECKING:
    from tcc.outputs.verdicts import CheckedFolderOutput


def _are_regular(
    ctx: click.Context, parameter: click.Parameter, value: tuple[Path, ...]
) -> tuple[Path, ...]:
    for path in value:
        options.is_regular_file(ctx, parameter, path)
    return value


@click.command("check")
@click.argument(
    "artifacts", nargs=-1, type=options.GIVEN, callback=_are_regular, metavar="ARTIFACT..."
)
@click.option(
    "--artifact",
    "about",
    multiple=True,
    type=options.GIVEN,
    callback=_are_regular,
    metavar="ARTIFACT",
    help="check a proof about this artifact; given twice, the second is OTHER of --implies",
)
@click.option(
    "--core", is_flag=True, help="also check the automaton against its core, by residuals"
)
@options.input_option(
    "--source",
    "grammar file (- is standard input) that the artifact has to be made from",
    type=options.GIVEN,
)
@click.option("--exact", is_flag=True, help="reject relaxed statements, and counts that are bounds")
@options.pin_option
@click.option(
    "--locked",
    is_flag=True,
    help="reject what differs from its pin; without ARTIFACT: check every pin",
)
@options.lock_option("the pins, for --locked")
@options.kernel_option(
    "fast: the same equations with numpy, for large artifacts; proved: pure, and a program "
    "extracted from proofs has to say VALID too (docs/proved.md)",
    "proved",
)
@options.format_option
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    artifacts: tuple[Path, ...],
    about: tuple[Path, ...],
    core: bool,
    source: Path | None,
    pin: bytes | None,
    exact: bool,
    locked: bool,
    lock: Path,
    kernel: Literal["pure", "fast", "proved"],
    output_format: str,
    as_json: bool,
) -> None:
    """Verify the certificates of each ARTIFACT.

    --core also checks that the automaton is that of the grammar inside the artifact; --source that
    this grammar is the one in a file; --exact that nothing is relaxed: the automaton enforces every
    statement, and every count is exact. --locked compares artifacts with the pins that `tcc pin`
    wrote. With --artifact, ARTIFACT is a proof about that artifact, written by `tcc prove -o`.
    """
    shown = options.chosen(output_format, as_json)
    if about:
        if len(artifacts) != 1 or core or source or pin or exact or locked or kernel != "pure":
            raise click.UsageError("--artifact is for one proof, and goes with --json alone", ctx)
        for path in about:
            require_artifact(path)
        ctx.exit(_check_proof(artifacts[0], about, shown))
    for path in artifacts:
        require_artifact(path)
    if not artifacts and not locked:
        raise click.UsageError("Missing argument 'ARTIFACT...'.", ctx)
    if (source or pin) and len(artifacts) != 1:
        raise click.UsageError("--source and --pin are for one artifact", ctx)
    pinned = None if pin is None else pin.hex()
    examine = partial(check, core=core, source=source, pin=pinned, exact=exact, kernel=kernel)
    try:
        if locked or len(artifacts) > 1:
            checked = (
                check_locked(lock, artifacts, examine) if locked else check_each(artifacts, examine)
            )
            _show_all(checked, shown)
            ctx.exit(checked.verdict)
        report = examine(artifacts[0])
    except CompileError as error:
        _show_source(error, str(source), shown)
        ctx.exit(FINDINGS)
    except NoChecker as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        where = error.filename or artifacts[0]
        raise click.ClickException(f"cannot read {where}: {error.strerror or error}") from None
    _show(report, artifacts[0], shown)
    ctx.exit(report.verdict)


def _check_proof(proof: Path, about: tuple[Path, ...], shown: str) -> int:
    """Print the verdict on a proof."""
    try:
        data, given = read_proof(proof), [path.read_bytes() for path in about]
    except OSError as error:
        where = error.filename or proof
        raise click.ClickException(f"cannot read {where}: {error.strerror or error}") from None
    from tcc_runtime.process import collection_put_off  # here: an artifact needs none of it

    with collection_put_off(True):  # states stay, and none of them is in a cycle
        report = check_proof(data, given)
    if shown == "json":
        screen.print_document(proof_document(report))
        return report.verdict
    first, *rest = proof_lines(report)
    (screen.good if report.verdict == CLEAN else screen.bad)(first)
    for line in rest:
        screen.say(f"  {line}")
    return report.verdict


def _show(report: CheckReport, artifact: Path, shown: str) -> None:
    if shown == "json":
        screen.print_document(to_json(report))
    elif shown != "text":
        print_found(of_check(report.findings, artifact), shown)
    else:
        _say(report, "")


def _show_all(checked: CheckedFile, shown: str) -> None:
    if shown == "json":
        screen.print_output(folder_output(checked))
        return
    if shown != "text":
        print_found(checked.found, shown)
        return
    for path, report in checked.reports:
        _say(report, f"{path}: ")
    for one in checked.pins:
        where = "" if one.place is None else f"{one.place.file}: "
        screen.bad(f"{where}{one.code}: {one.message}")
        if one.hint is not None:
            screen.say(f"  help: {one.hint}")


def _say(report: CheckReport, where: str) -> None:
    say = screen.good if report.verdict == CLEAN else screen.bad
    first, *rest = report.lines
    say(f"{where}{first}")
    for line in rest:
        screen.say(f"  {line}")
    if report.digest:
        screen.print_fields([("digest", report.digest)])


def _show_source(error: CompileError, source: str, shown: str) -> None:
    screen.say(f"{source} has errors, so nothing can be made from it: {error}", err=True)
    if shown != "text":
        print_diagnostics("check", error.diagnostics, {}, shown)


Check: TypeAlias = "Callable[[bytes], CheckReport]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """Result of checking artifacts.

    Attributes:
        reports: path and report of each artifact that could be read.
        pins: differences from the lock.
    """

    reports: Sequence[tuple[Path, CheckReport]]
    pins: Sequence[ReportedFinding]

    @property
    def verdict(self) -> int:
        """1 if anything is invalid or not pinned, else 2 if anything is declined, else 0."""
        verdicts = {report.verdict for _, report in self.reports}
        if self.pins or FINDINGS in verdicts:
            return FINDINGS
        return DECLINED if DECLINED in verdicts else CLEAN

    @property
    def found(self) -> list[ReportedFinding]:
        """All findings, artifact by artifact, then the pins."""
        by_check = [one for path, report in self.reports for one in of_check(report.findings, path)]
        return [*by_check, *self.pins]


def check_each(paths: Iterable[Path], check: Check) -> CheckedFile:
    """Check artifacts.

    Raises:
        OSError: an artifact cannot be read.
    """
    return CheckedFile(reports=[(path, check(path.read_bytes())) for path in paths], pins=())


def check_locked(lock: Path, paths: Sequence[Path], check: Check) -> CheckedFile:
    """Check artifacts against their pins; all pinned ones if none is named.

    Raises:
        OSError: an existing artifact cannot be read.
    """
    try:
        pins = pin_command.read_pins(lock)
        named = {pin_command.name_in(lock, path): path for path in paths}
    except pin_command.LockError as error:
        return CheckedFile(reports=(), pins=(error.found,))
    wanted = named if paths else {name: lock.parent / name for name in sorted(pins)}
    reports: list[tuple[Path, CheckReport]] = []
    found: list[ReportedFinding] = []
    for name, path in wanted.items():
        if not is_regular(path):
            found.append(pin_command.missing(path))
            continue
        data = path.read_bytes()
        report = check(data)
        reports.append((path, report))
        if report.verdict == CLEAN:
            found += pin_command.check_pin(name, path, pins, _pin(data))
            core = bytes(read_artifact(data, digests=False).columns["core"].data)
            found += pin_command.check_source(lock, pins.get(name), path, core)
        elif name not in pins:
            found += pin_command.check_pin(
                name, path, pins, pin_command.Pin(digest="", grammar="", version="")
            )
    return CheckedFile(reports=reports, pins=found)


def _pin(data: bytes) -> pin_command.Pin:
    """The pin of the bytes that were checked."""
    file = read_artifact(data, digests=False)
    manifest = file.manifest
    return pin_command.Pin(
        digest=file.digest.hex(), grammar=manifest.grammar, version=manifest.version
    )


def folder_output(checked: CheckedFile) -> CheckedFolderOutput:
    """The document of ``check`` over several artifacts."""
    from tcc.outputs.verdicts import CheckedFolderOutput

    artifacts = []
    for path, report in checked.reports:
        fields = to_json(report)
        del fields["format"], fields["format_version"]
        artifacts.append({"artifact": str(path), **fields})
    return CheckedFolderOutput(
        verdict=VERDICTS[checked.verdict],
        artifacts=artifacts,
        findings=[as_object(one) for one in checked.pins],
    )
