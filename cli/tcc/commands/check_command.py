"""``tcc check``: verifies certificates of artifacts, and compares artifacts with their pins.

Each artifact is read once, so the checked bytes are the bytes that are compared with the pin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias

import click

from tcc import files, options, screen
from tcc.commands import pin_command
from tcc.describe import to_json
from tcc.files import is_regular
from tcc.findings import ReportedFinding, as_object, of_check, print_diagnostics, print_found
from tcc.library import CompileError, check
from tcc.library.second_checker import NoChecker
from tcc.opening import open_artifact, require_artifact
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.policy.listing import statements_json
from tcc_certs.report import VERDICTS, CheckReport, is_proof

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
    "--core", is_flag=True, help="also check the automaton against its core, by residuals"
)
@options.input_option(
    "--source",
    "grammar file (- is standard input) that the artifact has to be made from",
    type=options.GIVEN,
)
@click.option("--exact", is_flag=True, help="reject relaxed statements, and counts that are bounds")
@click.option(
    "--artifact",
    "about",
    type=options.GIVEN,
    metavar="ARTIFACT",
    help="the artifact that a proof of `tcc prove` is about",
)
@click.option(
    "--implies",
    type=options.GIVEN,
    metavar="OTHER",
    help="the artifact that allows every session of --artifact, as the proof has to show",
)
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
    core: bool,
    source: Path | None,
    about: Path | None,
    implies: Path | None,
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
    wrote. With --artifact, the file is a proof of `tcc prove`; with --implies too, of `tcc prove
    GRAMMAR --implies OTHER`.
    """
    shown = options.chosen(output_format, as_json)
    pinned = None if pin is None else pin.hex()
    if about is not None:
        given = {"--core": core, "--source": source, "--exact": exact, "--locked": locked}
        given["--kernel"] = kernel != "pure"
        stray = [name for name, value in given.items() if value]
        if stray:
            raise click.UsageError(f"{', '.join(stray)}: not for a proof", ctx)
        _check_proof(ctx, artifacts, about, implies, pinned, shown)
    if implies is not None:
        raise click.UsageError("--implies needs --artifact, and a proof", ctx)
    for path in artifacts:
        if is_proof(files.first_bytes(path)):
            raise click.UsageError(f"{path} is a proof: name its artifact with --artifact", ctx)
        require_artifact(path)
    if not artifacts and not locked:
        raise click.UsageError("Missing argument 'ARTIFACT...'.", ctx)
    if (source or pin) and len(artifacts) != 1:
        raise click.UsageError("--source and --pin are for one artifact", ctx)
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


def _check_proof(
    ctx: click.Context,
    proofs: Sequence[Path],
    about: Path,
    implies: Path | None,
    pin: str | None,
    shown: str,
) -> NoReturn:
    """Check a proof about an artifact; compile grammars given in place of artifacts."""
    from tcc.library import artifact_bytes
    from tcc_certs.report import report_proof

    if len(proofs) != 1:
        raise click.UsageError("--artifact takes one proof", ctx)
    child, *parents = [
        bytes(artifact_bytes(open_artifact(path, command="check")))
        for path in (about, implies)
        if path is not None
    ]
    try:
        report = report_proof(proofs[0].read_bytes(), child, *parents, pin=pin)
    except OSError as error:
        raise click.ClickException(f"cannot read {proofs[0]}: {error.strerror or error}") from None
    _show(report, proofs[0], shown)
    ctx.exit(report.verdict)


def _show(report: CheckReport, artifact: Path, shown: str) -> None:
    if shown == "json":
        screen.print_document(to_json(report))
    elif shown != "text":
        listed = {str(artifact): statements_json(report.statements or ())}
        print_found(of_check(report.findings, artifact), shown, listed=listed)
    else:
        _say(report, "")


def _show_all(checked: CheckedFiles, shown: str) -> None:
    if shown == "json":
        screen.print_output(folder_output(checked))
        return
    if shown != "text":
        listed = {
            str(one.path): statements_json(one.report.statements or ()) for one in checked.artifacts
        }
        print_found(checked.found, shown, listed=listed)
        return
    for finding in checked.others:
        _say_finding(finding)
    # Failures come first, and no line says VALID unless the whole command succeeds.
    for one in checked.artifacts:
        if one.report.verdict != CLEAN:
            _say(one.report, f"{one.path}: ")
        for finding in one.pins:
            _say_finding(finding)
    for one in checked.artifacts:
        if one.report.verdict == CLEAN:
            _say(one.report, f"{one.path}: ", whole=checked.verdict == CLEAN)


def _say_finding(one: ReportedFinding) -> None:
    where = "" if one.place is None else f"{one.place.file}: "
    screen.bad(f"{where}{one.code}: {one.message}")
    if one.hint is not None:
        screen.say(f"  help: {one.hint}")


def _say(report: CheckReport, where: str, *, whole: bool = True) -> None:
    """Print a report.

    Args:
        where: text before the first line.
        whole: whether the whole command succeeds.  If not, a valid report is printed without VALID.
    """
    first, *rest = report.lines
    if report.verdict != CLEAN:
        screen.bad(f"{where}{first}")
    elif whole:
        screen.good(f"{where}{first}")
    else:
        screen.say(f"{where}{first.removeprefix('VALID: ')}")
    for line in rest:
        screen.say(f"  {line}")
    if report.digest:
        screen.print_fields([("digest", report.digest)])


def _show_source(error: CompileError, source: str, shown: str) -> None:
    screen.say(f"{source} has errors, so no artifact can be its own:", err=True)
    screen.say_lines(str(error), err=True)
    if shown != "text":
        print_diagnostics("check", error.diagnostics, {}, shown)


Check: TypeAlias = "Callable[[bytes], CheckReport]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """The result of checking an artifact.

    Attributes:
        path: the file of the artifact.
        report: the report of the kernel.
        pins: the differences of the artifact and its source from the lock.
    """

    path: Path
    report: CheckReport
    pins: Sequence[ReportedFinding] = ()

    @property
    def verdict(self) -> int:
        """1 if the artifact is invalid or differs from its pin, else the verdict of its report."""
        return FINDINGS if self.pins else self.report.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFiles:
    """The result of checking several artifacts.

    Attributes:
        artifacts: the results for artifacts that could be read.
        others: findings about the lock, and about pinned artifacts that do not exist.
    """

    artifacts: Sequence[CheckedFile]
    others: Sequence[ReportedFinding] = ()

    @property
    def verdict(self) -> int:
        """1 if anything is invalid or differs from the lock, else 2 if declined, else 0."""
        verdicts = {one.verdict for one in self.artifacts}
        if self.others or FINDINGS in verdicts:
            return FINDINGS
        return DECLINED if DECLINED in verdicts else CLEAN

    @property
    def pins(self) -> list[ReportedFinding]:
        """All differences from the lock."""
        return [*self.others, *[finding for one in self.artifacts for finding in one.pins]]

    @property
    def found(self) -> list[ReportedFinding]:
        """All findings, about certificates first, then about pins."""
        return [
            *[found for one in self.artifacts for found in of_check(one.report.findings, one.path)],
            *self.pins,
        ]


def check_each(paths: Iterable[Path], check: Check) -> CheckedFiles:
    """Check several artifacts without a lock.

    Raises:
        OSError: an artifact cannot be read.
    """
    return CheckedFiles(
        artifacts=[CheckedFile(path=path, report=check(path.read_bytes())) for path in paths]
    )


def check_locked(lock: Path, paths: Sequence[Path], check: Check) -> CheckedFiles:
    """Check artifacts against their pins; check every pinned artifact if `paths` is empty.

    Raises:
        OSError: an existing artifact cannot be read.
    """
    try:
        pins = pin_command.read_pins(lock)
        named = {pin_command.name_in(lock, path): path for path in paths}
    except pin_command.LockError as error:
        return CheckedFiles(artifacts=(), others=(error.found,))
    wanted = named if paths else {name: lock.parent / name for name in sorted(pins)}
    artifacts: list[CheckedFile] = []
    others: list[ReportedFinding] = []
    for name, path in wanted.items():
        if not is_regular(path):
            others.append(pin_command.missing(lock, path))
            continue
        data = path.read_bytes()
        report = check(data)
        found: list[ReportedFinding] = []
        if report.verdict == CLEAN:
            found += pin_command.check_pin(lock, name, path, pins, _pin(data))
            core = bytes(read_artifact(data, digests=False).columns["core"].data)
            found += pin_command.check_source(lock, pins.get(name), path, core)
        elif name not in pins:
            found.append(pin_command.unpinned(lock, path))
        artifacts.append(CheckedFile(path=path, report=report, pins=found))
    return CheckedFiles(artifacts=artifacts, others=others)


def _pin(data: bytes) -> pin_command.Pin:
    """Return the pin of the checked bytes."""
    file = read_artifact(data, digests=False)
    manifest = file.manifest
    return pin_command.Pin(
        digest=file.digest.hex(), grammar=manifest.grammar, version=manifest.version
    )


def folder_output(checked: CheckedFiles) -> CheckedFolderOutput:
    """Return the JSON document of ``tcc check`` over several artifacts."""
    from tcc.outputs.verdicts import CheckedFolderOutput

    artifacts = []
    for one in checked.artifacts:
        fields = to_json(one.report)
        del fields["format"], fields["format_version"]
        word = VERDICTS[one.verdict]
        if one.verdict == CLEAN != checked.verdict:
            word = "HOLDS"
        artifacts.append({"artifact": str(one.path), **fields, "verdict": word})
    return CheckedFolderOutput(
        verdict=VERDICTS[checked.verdict],
        artifacts=artifacts,
        findings=[as_object(one) for one in checked.pins],
    )
