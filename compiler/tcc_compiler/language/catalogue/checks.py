"""TCC84x to TCC86x: pinned artifacts, signed statements, changes that break."""

from __future__ import annotations

from collections.abc import Mapping

from tcc_compiler.language.catalogue.entry import Entry

CHECKS: Mapping[str, Entry] = {
    "TCC841": Entry(
        "no lock of artifacts",
        "`tcc check --locked` compares artifacts with the pins in `tcc.lock`. The file is not\n"
        "there, or is not what `tcc pin` writes: JSON with the format, its version and, for each\n"
        "path below the lock's folder, digest, grammar and version. A member that is missing,\n"
        "unknown or named twice makes it malformed, so that nothing is passed by mistake.\n"
        "Write it again with `tcc pin ARTIFACT`, and look at what changed.",
    ),
    "TCC842": Entry(
        "artifact that is not pinned",
        "The lock has no pin for this path, so nobody has said that this artifact may be used.\n"
        "Look at what it allows (`tcc inspect`, `tcc diff`), then pin it: `tcc pin ARTIFACT`.",
    ),
    "TCC843": Entry(
        "artifact that is not the pinned one",
        "The artifact at this path has another digest, grammar or version than its pin. It was\n"
        "compiled again from another grammar or with other options, or was replaced. See with\n"
        "`tcc diff` what it allows that the pinned one did not, then pin it: `tcc pin ARTIFACT`.",
    ),
    "TCC844": Entry(
        "pinned artifact that is missing",
        "The lock has a pin for this path, and there is no file that can be read. Put the\n"
        "artifact there, or take the pin away: `tcc pin --remove ARTIFACT`.",
    ),
    "TCC845": Entry(
        "source that is not the pinned one",
        "The grammar that a pinned artifact was made from says another thing now, does not\n"
        "compile, or is gone; comments and layout do not matter. The artifact allows what the\n"
        "grammar said when it was pinned. Compile it anew, see with `tcc diff` what changed, and\n"
        "pin it: `tcc pin ARTIFACT`, with `--source G` where the grammar has moved, with\n"
        "`--no-source` where there is none to be held to.",
    ),
    "TCC851": Entry(
        "no envelope",
        "A signed statement is one DSSE envelope: a JSON object with `payload`, `payloadType` and\n"
        "`signatures`, each signature with `sig` and perhaps `keyid`; payload and signatures in\n"
        "standard Base64 with its padding. A member that is unknown or named twice, white space\n"
        "in Base64, or a file of more than 1 MiB is refused. Sign again with `tcc sign`.",
    ),
    "TCC852": Entry(
        "payload of another type",
        "The envelope does not hold an in-toto statement: its `payloadType` is not\n"
        "`application/vnd.in-toto+json`. It may be validly signed, but for another purpose.",
    ),
    "TCC853": Entry(
        "no signature by this key",
        "No signature of the envelope names the key that was given with --key. Its `keyid`\n"
        "is not that of the key (the SHA-256 that securesystemslib gives an Ed25519 key).\n"
        "Verify with the key of whoever signed, from a source that you trust.",
    ),
    "TCC854": Entry(
        "wrong signature",
        "The signature is not one of this payload by this key: payload or signature were\n"
        "changed after signing. Nothing that the envelope says is to be believed.",
    ),
    "TCC855": Entry(
        "no statement of tcc",
        "The signature holds, but what was signed is not a statement that `tcc sign` makes: an\n"
        "in-toto Statement v1 with one subject that has sha256 and blake3, and tcc's predicate.\n"
        "The same key may sign other things; this one says nothing of an artifact or a ledger.",
    ),
    "TCC856": Entry(
        "another file",
        "The signed statement is about a file with other bytes: sha256 or blake3 of the file\n"
        "that was given are not the statement's. The file was changed, or is another one.",
    ),
    "TCC857": Entry(
        "no Ed25519 key",
        "Keys are Ed25519 in PEM: a private one without a password to sign (PKCS 8), a public\n"
        "one to verify (SubjectPublicKeyInfo). `tcc sign --new-key KEY.pem` makes both, and so\n"
        "does `openssl genpkey -algorithm ed25519`.",
    ),
    "TCC858": Entry(
        "nothing that can be signed",
        "A statement says only what was found to be true in the same command. What was given\n"
        "is not a valid artifact, or not a ledger that its artifact (--artifact) upholds.\n"
        "`tcc check` and `tcc validate` say what is wrong with it.",
    ),
    "TCC860": Entry(
        "breaking change",
        "`tcc diff` found that the new grammar lets something through that the old one does not\n"
        "(or, with `--breaking narrower`, that it lost something). The message has the numbers\n"
        "of plans, a shortest and a cheapest one, and the statements that changed.",
    ),
}
