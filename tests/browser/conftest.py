"""Pages in chromium, as people open them: a file, and no network behind it."""

from __future__ import annotations

import base64
import io
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@dataclass(frozen=True, kw_only=True)
class Browser:
    """A browser of its own, and what the tests ask of it."""

    driver: Any

    def open(self, page: Path) -> None:
        """Open a file; what was logged before is dropped."""
        self.requests()
        self.console()
        self.driver.get(page.as_uri())

    def script(self, text: str, *arguments: object) -> Any:
        """What a script of the test gives; the page's policy does not bind it."""
        return self.driver.execute_script(text, *arguments)

    def console(self) -> list[str]:
        """Everything that the console has said since it was asked last."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Every address that was asked for since then."""
        found = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def emulate(self, *, dark: bool = False, media: str = "", width: int = 1200) -> None:
        """Another scheme of colours, medium or width."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": media, "features": [scheme]}
        )
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def picture(self) -> Any:
        """The window as a picture of pillow."""
        from PIL import Image

        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
        return Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")

    def press(self, *keys: str) -> None:
        """Keys, to whatever has the focus."""
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Browser]]:
    """Starts browsers, each with a profile of its own; all end with the tests."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.fail("no chromium, or no chromedriver: scripts/browser installs both on Debian")
    started = []

    def begin(*, scripts: bool = True) -> Browser:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        profile = tmp_path_factory.mktemp("profile")
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        if not scripts:
            blocked = {"profile.managed_default_content_settings.javascript": 2}
            options.add_experimental_option("prefs", blocked)
        started.append(webdriver.Chrome(options=options, service=Service(driver)))
        return Browser(driver=started[-1])

    yield begin
    for one in started:
        one.quit()


@pytest.fixture(scope="session")
def _browser(start: Callable[..., Browser]) -> Browser:
    return start()


@pytest.fixture
def browser(_browser: Browser) -> Browser:
    """The browser that the tests share, as it was at first."""
    _browser.emulate()
    return _browser
