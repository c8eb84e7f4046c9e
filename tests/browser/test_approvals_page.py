"""The page of open questions in a browser: a person gives a token, reads, and decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tcc as library
from tests.browser.conftest import Browser
from tests.mcp.test_approvals import GRAMMAR, LEAD, RISKY, bearer, called, options, pending
from tests.mcp.test_http import Web, web

EVIL = "<img src=x onerror=window.evil=1>"
TOKEN = "token"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("approvals")
    path = folder / "cases.tcca"
    library.save(library.compile_text(GRAMMAR), path)
    with web(folder, path, *options(folder), "--show", "act.how") as found:
        yield found


def entered(browser: Browser, desk: Web, scope: str | None = LEAD) -> None:
    """Open the page and give it a token."""
    browser.requests()
    browser.console()
    browser.driver.get(f"http://127.0.0.1:{desk.port}/approvals")
    browser.driver.find_element("id", TOKEN).send_keys(bearer("boss", scope).split()[1])
    browser.driver.find_element("css selector", "#enter button").click()


def eventually(what: Callable[[], Any]) -> Any:
    until = time.monotonic() + 15
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.05)
    return found


def said(browser: Browser) -> str:
    return str(browser.script("return document.getElementById('said').innerText"))


def card(browser: Browser, question: str) -> Any:
    return eventually(
        lambda: browser.driver.find_elements("css selector", f'article[data-id="{question}"]')
    )[0]


def test_a_person_reads_a_question_and_approves_it(browser: Browser, desk: Web) -> None:
    asked = {**RISKY, "how": EVIL}
    question = pending(desk, "ann", **asked)
    entered(browser, desk)
    shown = card(browser, question)
    for text in ("act", "A lead decides about risky acts.", 'ask "lead" within 1 h', EVIL):
        assert text in shown.text
    assert "(not shown" in shown.text  # of the case, which the ledger does not have
    shown.find_element("css selector", "button.approve").click()
    eventually(lambda: said(browser) == "act: approved.")
    assert called(desk, "ann", **asked) is None
    assert browser.script("return window.evil ?? null") is None
    assert browser.console() == []
    host = f"http://127.0.0.1:{desk.port}/"
    assert all(address.startswith(host) for address in browser.requests())


def test_a_person_denies_with_a_reason(browser: Browser, desk: Web) -> None:
    question = pending(desk, "bob")
    entered(browser, desk)
    shown = card(browser, question)
    shown.find_element("css selector", "input").send_keys("Not today.")
    shown.find_element("css selector", "button.deny").click()
    eventually(lambda: said(browser) == "act: denied.")
    assert called(desk, "bob") == "R209"


def test_a_new_question_appears_by_itself(browser: Browser, desk: Web) -> None:
    entered(browser, desk)
    eventually(lambda: said(browser) == "Nothing is pending.")
    card(browser, pending(desk, "cid", **{**RISKY, "id": "c-3"}))


def test_the_token_is_nowhere_but_in_memory(browser: Browser, desk: Web) -> None:
    entered(browser, desk)
    eventually(lambda: said(browser) or browser.driver.find_elements("tag name", "article"))
    token = bearer("boss", LEAD).split()[1][:40]
    stored = "return [localStorage.length, sessionStorage.length, document.cookie, location.href]"
    local, session, cookie, address = browser.script(stored)
    assert (local, session, cookie) == (0, 0, "")
    assert token not in address and token not in browser.driver.page_source
    assert browser.script(f"return document.getElementById('{TOKEN}').value") == ""


@pytest.mark.parametrize("scope", [None, "openid"])
def test_a_token_without_a_role_is_told(browser: Browser, desk: Web, scope: str | None) -> None:
    entered(browser, desk, scope)
    eventually(lambda: "tcc:approve:ROLE" in said(browser))


@pytest.mark.parametrize("width", [320, 1200])
def test_the_page_fits_the_screen(browser: Browser, desk: Web, width: int) -> None:
    question = pending(desk, f"eve{width}", **{**RISKY, "how": "x" * 40})
    browser.emulate(width=width)
    entered(browser, desk)
    card(browser, question)
    assert browser.script("return document.documentElement.scrollWidth <= window.innerWidth")
