"""Absolute http and https URLs in normal form, and whether a URL is under another one.

Normative text: docs/spec/core.md, section 3.  The module accepts a subset of the URLs that browsers
accept, in which every reader sees the same host: a text that two readers could split differently
has no normal form.  Cost: linear in the text.
"""

from __future__ import annotations

import re

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.values.canonical import utf8

MOST = 65536  # most characters, before and after normalisation

# White space, control characters and backslashes: some readers drop them or read them as slashes.
_REFUSED = re.compile("[\\\\\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_PARTS = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(r"(\[[0-9a-f:]*\]|[a-z0-9_.-]+)(?::([0-9]*))?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9_-]{1,63}", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_OCTET = re.compile(r"0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5]", re.ASCII)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?", re.ASCII)
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_OTHER = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]", re.ASCII)
_PORTS = {"http": 80, "https": 443}


def normal(text: str) -> str:
    """Return the normal form of an absolute http or https URL, without its fragment.

    Raises:
        Rejected: R105: `text` is no such URL, or readers may see different hosts or paths in it;
            R106: it has a lone surrogate.
    """
    scheme, authority, path, query = _split(text)
    return _checked(f"{scheme}://{_authority(authority, scheme, text)}{path}{query}")


def scope(text: str) -> str:
    """Return the normal form of a scope of URLs; its host may start with ``*.``.

    Raises:
        Rejected: R105, R106 as :func:`normal`; R105: it has a query.
    """
    scheme, authority, path, query = _split(text)
    ensure(not query, Code.OPEN_VALUE, "value", "a URL without a query", text)
    star = "*." if authority.startswith("*.") else ""
    known = _authority(authority.removeprefix("*."), scheme, text)
    is_number = known.startswith("[") or _ends_in_number(known.partition(":")[0])
    ensure(not (star and is_number), Code.OPEN_VALUE, "value", "a name after `*.`", text)
    return _checked(f"{scheme}://{star}{known}{path}")


def is_under(url: str, scope: str) -> bool:
    """Return whether a URL has the scheme, host and port of a scope, and a path inside its path.

    Args:
        url: in normal form.
        scope: a result of :func:`scope`, or another URL in normal form, whose query is ignored.
    """
    scope = scope.partition("?")[0]
    scheme, _, rest = scope.partition("://")
    if rest.startswith("*."):  # at least one label, because labels are not empty
        authority, slash, path = rest[1:].partition("/")
        mine, _, inner = url.partition("://")
        own, _, tail = inner.partition("/")
        if mine != scheme or not own.endswith(authority):
            return False
        url, scope = slash + tail, slash + path
    if not url.startswith(scope):
        return False
    return scope.endswith("/") or url[len(scope) : len(scope) + 1] in ("", "/", "?")


def host(url: str) -> str:
    """Return the host of a URL in normal form, without the port."""
    authority = url.partition("://")[2].partition("/")[0]
    return authority if authority.endswith("]") else authority.rpartition(":")[0] or authority


def _split(text: str) -> tuple[str, str, str, str]:
    """Return the scheme, authority, normal path and normal query of a URL."""
    utf8(text, "value")
    ensure(len(text) <= MOST, Code.OPEN_VALUE, "value", f"at most {MOST} characters", len(text))
    found = _PARTS.fullmatch(text)
    if found is None or _REFUSED.search(text):
        expected = "an absolute http or https URL without white space and backslashes"
        raise Rejected(Code.OPEN_VALUE, "value", expected, text)
    scheme, authority, path, query = found.groups()
    return scheme.lower(), authority.lower(), _path(path, text), _escaped(query or "", text)


def _authority(authority: str, scheme: str, text: str) -> str:
    """Return the host, and the port if it is not the default port of the scheme."""
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        expected = "a host in ASCII, without user information, `%` and `*`"
        raise Rejected(Code.OPEN_VALUE, "value", expected, text)
    name, port = found[1], (found[2] or "").lstrip("0") or ("0" if found[2] else "")
    ensure(len(port) <= 5 and int(port or 0) < 1 << 16, Code.OPEN_VALUE, "value", "a port", text)
    if name.startswith("["):
        name = f"[{_ipv6(name[1:-1], text)}]"
    else:
        _ensure_host(name, text)
    return name if port in ("", str(_PORTS[scheme])) else f"{name}:{port}"


def _ensure_host(name: str, text: str) -> None:
    labels = name.split(".")
    # Decoders of internationalised names turn a label such as xn--example- into plain ASCII.
    is_plain = all(
        _LABEL.fullmatch(label) and not (label.startswith("xn--") and label.endswith("-"))
        for label in labels
    )
    ensure(is_plain, Code.OPEN_VALUE, "value", "a host of plain labels", text)
    if _ends_in_number(name):
        octets = len(labels) == 4 and all(map(_OCTET.fullmatch, labels))
        ensure(octets, Code.OPEN_VALUE, "value", "an IPv4 address as four decimal numbers", text)


def _ends_in_number(name: str) -> bool:
    """Return whether readers may read a host as an IPv4 address."""
    return _NUMBER.fullmatch(name.rpartition(".")[2]) is not None


def _ipv6(name: str, text: str) -> str:
    """Return the shortest form of an IPv6 address; ``::`` is its first longest run of zeros."""
    head, double, tail = name.partition("::")
    groups = [part.split(":") if part else [] for part in (head, tail)]
    left = 8 - len(groups[0]) - len(groups[1])
    digits = all(1 <= len(group) <= 4 for part in groups for group in part)
    fits = digits and (left >= 1 if double else left == 0)
    ensure(fits, Code.OPEN_VALUE, "value", "an IPv6 address of hexadecimal groups", text)
    numbers = [int(group, 16) for group in (*groups[0], *["0"] * left, *groups[1])]
    best = (0, 0)
    at = 0
    while at < 8:
        end = at
        while end < 8 and numbers[end] == 0:
            end += 1
        if end - at > best[1] - best[0]:
            best = at, end
        at = end + 1
    shown = [f"{number:x}" for number in numbers]
    if best[1] - best[0] < 2:
        return ":".join(shown)
    return f"{':'.join(shown[: best[0]])}::{':'.join(shown[best[1] :])}"


def _path(path: str, text: str) -> str:
    """Return a path with resolved dot segments, after decoding escapes of unreserved characters."""
    names: list[str] = []
    last = ""
    for last in _escaped(path or "/", text)[1:].split("/"):
        if last == "..":
            del names[-1:]
        elif last != ".":
            names.append(last)
    if last in (".", ".."):
        names.append("")
    found = "/" + "/".join(names)
    hidden = "%2F" in found or "%5C" in found
    ensure(not hidden, Code.OPEN_VALUE, "value", "a path without %2f and %5c", text)
    return found


def _escaped(part: str, text: str) -> str:
    """Return a path or query with decoded unreserved characters, and others escaped."""

    def escape(found: re.Match[str]) -> str:
        digits = found[1]
        if digits is None:
            raise Rejected(Code.OPEN_VALUE, "value", "two hexadecimal digits after `%`", text)
        code = int(digits, 16)
        return chr(code) if code in _UNRESERVED else f"%{code:02X}"

    plain = _OTHER.sub(lambda found: "".join(f"%{b:02X}" for b in found[0].encode()), part)
    return _ESCAPE.sub(escape, plain)


def _checked(url: str) -> str:
    ensure(len(url) <= MOST, Code.OPEN_VALUE, "value", f"at most {MOST} characters", len(url))
    return url
