"""URLs: normal forms, and what is under a scope, beside a WHATWG parser."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address

import pytest
from ada_url import URL
from hypothesis import example, given, strategies as st

from tcc_certs.errors import Code, Rejected
from tcc_certs.values import urls
from tests.doubling import doubles

HOSTS = st.sampled_from(
    (
        "example.com", "a.example.com", "evil.com", "example.com.", "EXAMPLE.com", "127.0.0.1",
        "127.1", "0x7f.1", "2130706433", "1.2.3.4.5", "[::1]", "[0:0::1]", "[1:2:3:4:5:6:7:8]",
        "[::ffff:1.2.3.4]", "user@example.com", "example.com@evil.com", "example.com:443",
        "example.com:080", "example.com:", "example.com:99999", "exa%6dple.com", "ex\u00e4mple.com",
        "xn--exmple-cua.com", "xn--example-.com", "example.com\\@evil.com", "*.example.com", "a..b",
        "example\u3002com", "a_b", "-a-", "example.com%2f.evil.com", "", ".", "com",
    )
)  # fmt: skip
SEGMENTS = st.sampled_from(
    (
        "a", "docs", "docsx", "..", ".", "", "%2e%2e", ".%2E", "%2f", "%5c", "%41", "%7e", "%25",
        "%252f", "%%32%66", "%", "a;b", "..;", "é", "a b", "\\", "|", "[", "^", "{", "%0a", "\t",
        "@", ":", "*",
    )
)  # fmt: skip
TAILS = st.sampled_from(("", "?", "?q=%2f", "?q=../x", "#f", "?a#/../", "?\\", "? ", "?%zz", "#%"))
URLS = st.builds(
    lambda scheme, host, names, tail: f"{scheme}://{host}{''.join(f'/{n}' for n in names)}{tail}",
    st.sampled_from(("http", "https", "HTTPS", "ftp", "http:", "javascript")), HOSTS,
    st.lists(SEGMENTS, max_size=5), TAILS,
)  # fmt: skip
SCOPES = (
    "https://example.com/", "https://example.com/docs", "https://example.com/docs/",
    "http://*.example.com/", "https://*.example.com/docs", "http://example.com:8080/",
    "http://127.0.0.1/", "http://[::1]/docs",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("HTTPS://Example.COM", "https://example.com/"),
        ("https://h:443/a#f", "https://h/a"), ("http://h:443", "http://h:443/"),
        ("http://h:0080/", "http://h/"), ("http://h:/", "http://h/"), ("http://h:0", "http://h:0/"),
        ("https://h/a/../../b/.", "https://h/b/"), ("https://h/a/%2E%2e/b", "https://h/b"),
        ("https://h//a//../b", "https://h//a/b"), ("https://h/%7eu/%c3%a9", "https://h/~u/%C3%A9"),
        ("https://h/é|", "https://h/%C3%A9%7C"), ("https://h/?a=%2f&b=é", "https://h/?a=%2F&b=%C3%A9"),
        ("https://h/%252f", "https://h/%252f"), ("https://h/?", "https://h/?"),
        ("http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]/"), ("http://[1:0:0:2::]/", "http://[1:0:0:2::]/"),
        ("http://[::FFFF:1:2]/", "http://[::ffff:1:2]/"), ("http://1.2.3.4:81", "http://1.2.3.4:81/"),
        ("https://a_b-c.x--y/", "https://a_b-c.x--y/"),
    ],
)  # fmt: skip
def test_normal_forms(text: str, normal: str) -> None:
    assert urls.normal(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "", "example.com", "//example.com/", "ftp://h/", "https:h", "https:/h", "https:///h",
        "https://user@h/", "https://u:p@h/", "https://h@evil.com/", "https://h/a b", "https://h/\t",
        " https://h/", "https://h/\n", "https://h/\u00a0", "https://h/\u3000", "https://h\\evil.com",
        "https://h/a\\b", "https://h/%2f", "https://h/%2F..", "https://h/%5C", "https://h/%5c?x",
        "https://h/%", "https://h/%4", "https://h/%%32f", "https://h/?%", "https://h:65536/",
        "https://h:123456789012/", "https://h:x/", "https://h:-1/", "https://ex\u0430mple.com/",
        "https://exampl\u0117.com/", "https://h%41/", "https://*/", "https://*.h/", "https://h./",
        "https://.h/", "https://a..b/", "http://127.1/", "http://0x7f.0.0.1/", "http://2130706433/",
        "http://01.2.3.4/", "http://256.1.1.1/", "http://1.2.3/", "http://[::1%25lo]/",
        "http://[::1.2.3.4]/", "http://[1::2::3]/", "http://[12345::]/", "http://[::1", "http://[]/",
        "https://xn--example-.com/", "https://xn--/", "https://" + "a" * 64 + "/",
        "https://h/" + "a" * 65536, "https://h/" + "é" * 20000,
    ],
)  # fmt: skip
def test_what_is_no_url(text: str) -> None:
    with pytest.raises(Rejected) as refused:
        urls.normal(text)
    assert refused.value.code is Code.OPEN_VALUE


def test_a_lone_surrogate_is_no_value() -> None:
    with pytest.raises(Rejected) as refused:
        urls.normal("https://h/\ud800")
    assert refused.value.code is Code.NO_VALUE


@pytest.mark.parametrize(
    ("url", "scope", "under"),
    [
        ("https://example.com/docs", "https://example.com/docs", True),
        ("https://example.com/docs?x", "https://example.com/docs", True),
        ("https://example.com/docs/a", "https://example.com/docs", True),
        ("https://example.com/docsx", "https://example.com/docs", False),
        ("https://example.com/docs/../x", "https://example.com/docs", False),
        ("https://example.com/docs", "https://example.com/docs/", False),
        ("http://example.com/docs", "https://example.com/docs", False),
        ("https://example.com:8443/docs", "https://example.com/docs", False),
        ("https://example.com:443/docs", "https://example.com/docs", True),
        ("https://example.com.evil.com/docs", "https://example.com/docs", False),
        ("https://example.comx/docs", "https://example.com/", False),
        ("https://evil.com/https://example.com/docs", "https://example.com/docs", False),
        ("https://a.example.com/docs/x", "https://*.example.com/docs", True),
        ("https://a.b.example.com/docs", "https://*.example.com/docs", True),
        ("https://example.com/docs", "https://*.example.com/docs", False),
        ("https://aexample.com/docs", "https://*.example.com/docs", False),
        ("https://a.example.com:1/docs", "https://*.example.com/docs", False),
        ("https://a.example.com:1/docs", "https://*.example.com:1/docs", True),
        ("http://a.example.com/docs", "https://*.example.com/docs", False),
        ("https://a.example.com/x", "https://*.example.com/docs", False),
        ("https://evil.com/?.example.com/docs", "https://*.example.com/docs", False),
        ("https://example.com/docs/a", "https://example.com/docs?q=1", True),
    ],
)  # fmt: skip
def test_what_is_under_a_scope(url: str, scope: str, under: bool) -> None:
    assert urls.is_under(urls.normal(url), scope) is under


@pytest.mark.parametrize(
    "text",
    [
        "https://*/", "https://*.*.com/", "https://a.*.com/", "https://*x.com/", "https://h/?q",
        "https://*.1.2.3.4/", "https://*.[::1]/", "https://*.", "h", "https://u@*.h/",
    ],
)  # fmt: skip
def test_what_is_no_scope(text: str) -> None:
    with pytest.raises(Rejected):
        urls.scope(text)


@given(URLS)
def test_a_normal_form_is_its_own_normal_form(text: str) -> None:
    try:
        found = urls.normal(text)
    except Rejected:
        return
    assert urls.normal(found) == found


@given(URLS)
@example("https://example.com/a/%2e%2E//b?c#d")
@example("http://[1:0:0:2::]/")
def test_a_normal_form_is_the_same_url_to_a_whatwg_parser(text: str) -> None:
    try:
        found = urls.normal(text)
    except Rejected:
        return
    parsed, again = URL(text), URL(found)
    assert (again.protocol, again.host) == (parsed.protocol, parsed.host)
    assert urls.host(found) == parsed.hostname
    assert f"{again.pathname}{again.search}" == found.partition(again.host)[2].removesuffix("?")
    assert len(again.pathname.split("/")) == len(parsed.pathname.split("/"))


@given(URLS, st.sampled_from(SCOPES))
def test_a_url_under_a_scope_resolves_there(text: str, scope: str) -> None:
    try:
        found = urls.normal(text)
    except Rejected:
        return
    if urls.is_under(found, scope):
        parsed, around = URL(text), URL(scope.replace("*.", "star."))
        host = around.host.removeprefix("star")
        assert parsed.protocol == around.protocol and not parsed.username
        assert parsed.host == host or ("*" in scope and parsed.host.endswith(host))
        inside = parsed.pathname.startswith(around.pathname.rstrip("/") + "/")
        assert inside or parsed.pathname == around.pathname


@given(st.lists(st.integers(0, 65535) | st.just(0), min_size=8, max_size=8))
def test_ipv6_addresses_have_one_form(groups: list[int]) -> None:
    text = ":".join(f"{group:X}" for group in groups)
    found = urls.host(urls.normal(f"http://[{text}]:8080/"))
    assert found == URL(f"http://[{text}]/").hostname
    assert IPv6Address(found[1:-1]) == IPv6Address(text)


@pytest.mark.parametrize("part", ["/..", "%41", "/a/../b", "a.", "\u00e9"])
@pytest.mark.sampled(2)
def test_long_urls_take_linear_work(part: str) -> None:
    def work(size: int) -> Callable[[], object]:
        text = "https://h/" + part * size
        return lambda: [urls.normal(text) for _ in range(40)]

    doubles(work, 65_000 // len(part.encode()) // 6)
