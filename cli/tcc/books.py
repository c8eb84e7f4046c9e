"""The book of quotes that a command is given."""

from __future__ import annotations

from pathlib import Path

import click

from tcc.opening import refuse
from tcc_certs.errors import Rejected
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.asking.quote_book import QuoteBook, read_quotes


def quotes_in(path: Path, artifact: Artifact) -> QuoteBook:
    """The quotes of a file, for an artifact; what is wrong with it ends the command."""
    try:
        return read_quotes(path.read_bytes(), artifact)
    except Rejected as refusal:
        refuse(path, refusal)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None
