# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``scripts/play.py --viz viser`` in a process of its own, and its page in a real Chromium."""

import contextlib
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

PLAY = Path(__file__).resolve().parents[2] / "scripts" / "play.py"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 500
"""Longest start of the engine, and longest wait for the page [s]; both take seconds on a machine that is not busy."""

ANSWER_MS = 1500
"""How long the page takes to hear of a choice and to answer it, and the viewer to hear of a number [ms]; generous."""

SEVERITY_BOX = ".mantine-NumberInput-input:visible"
"""The number beside the slider."""

SIZE = {"width": 1440, "height": 840}
"""Of the page [px]."""

SOFTWARE_WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""Chromium draws without a GPU."""


def find_chromium() -> str:
    """The browser of the distribution."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return path
    raise FileNotFoundError("no Chromium to open the viewer with; install one: apt-get install chromium")


@dataclass
class Viewer:
    """A viewer that runs."""

    process: subprocess.Popen
    log: Path
    url: str

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def interrupt(self) -> int:
        """Ctrl-C; what the process ends with."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(TIMEOUT_S)


@contextlib.contextmanager
def viewer(folder: Path, *arguments: str) -> Iterator[Viewer]:
    """Starts the viewer and waits until it serves its page."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "viewer.txt"
    command = [sys.executable, str(PLAY), "--viz", "viser", "--port", str(port), *arguments]
    with log.open("w") as stream:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
            # a job in the background of a shell is deaf to Ctrl-C, and so are its children
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        running, until = Viewer(process, log, ""), time.monotonic() + TIMEOUT_S
        while "viewer: http" not in running.said():
            assert process.poll() is None, f"the viewer ended with {process.returncode}:\n{running.said()[-4000:]}"
            assert time.monotonic() < until, f"no page after {TIMEOUT_S} s:\n{running.said()[-4000:]}"
            time.sleep(0.2)
        running.url = running.said().split("viewer: ")[1].split()[0]
        yield running
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class LivePage:
    """What a person does in the page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        page.set_default_timeout(1000 * TIMEOUT_S)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, url: str) -> None:
        self.page.goto(url)
        self.page.wait_for_selector("#umc-faults td")
        self.page.wait_for_selector("#umc-now td")

    def close_notes(self) -> None:
        """Closes what viser says about drawing without a GPU, if it does."""
        for note in self.page.locator(".mantine-Notification-closeButton").all():
            note.click()

    def choose(self, label: str, option: str) -> None:
        self.page.get_by_label(label, exact=True).click()
        self.page.get_by_role("option", name=option, exact=True).click()
        self.page.wait_for_timeout(ANSWER_MS)  # its slider arrives

    def press(self, button: str) -> None:
        self.page.get_by_role("button", name=button, exact=True).click()

    def severity(self) -> float:
        """What the slider is at."""
        self.page.wait_for_timeout(ANSWER_MS)
        return float(self.page.locator(SEVERITY_BOX).input_value())

    def set_severity(self, value: float) -> None:
        box = self.page.locator(SEVERITY_BOX)
        box.fill(str(value))
        box.press("Enter")
        self.page.wait_for_timeout(ANSWER_MS)

    def row(self, joint: str) -> list[str]:
        """Cells of a joint in the table of faults."""
        return self.page.locator(f'#umc-faults tr[data-joint="{joint}"] td').all_inner_texts()

    def wait_for_row(self, joint: str, text: str) -> None:
        self.page.wait_for_function(
            "([joint, text]) => document.querySelector(`#umc-faults tr[data-joint=${joint}]`).innerText.includes(text)",
            arg=[joint, text],
        )

    def now(self, quantity: str) -> tuple[float, float, float]:
        """Value of the chosen joint, its least and its most."""
        value, least, most = self.page.locator(f'#umc-now tr[data-quantity="{quantity}"] td').all_inner_texts()[1:]
        return float(value), float(least), float(most)

    def wait_for_most(self, quantity: str, most: float) -> None:
        """Waits until the page shows a limit."""
        self.page.wait_for_function(
            "([name, most]) => Math.abs(parseFloat(document.querySelector("
            "`#umc-now tr[data-quantity=${name}]`).cells[3].innerText) - most) < 0.006",
            arg=[quantity, most],
        )

    def wait_for_value_within_limits(self, quantity: str) -> None:
        """Waits until the page shows a value that its limits allow."""
        self.page.wait_for_function(
            "name => { const [now, least, most] = [...document.querySelector("
            "`#umc-now tr[data-quantity=${name}]`).cells].slice(1).map(cell => parseFloat(cell.innerText));"
            " return least <= now && now <= most; }",
            arg=quantity,
        )

    def picture(self) -> np.ndarray:
        """The 3D part of the page; shape is (height, width, 3)."""
        shot = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        return np.asarray(shot)[150:, 350:1040].astype(int)

    def wait_for_red(self, pixels: int) -> None:
        """Waits until that much of the picture shows a broken link: the page draws when it has time."""
        deadline = time.monotonic() + TIMEOUT_S
        while red_pixels(self.picture()) < pixels:
            assert time.monotonic() < deadline, "no link has turned red"
            self.page.wait_for_timeout(ANSWER_MS)


def red_pixels(picture: np.ndarray) -> int:
    """How much of a picture is as red as a broken link."""
    red, green, blue = picture[..., 0], picture[..., 1], picture[..., 2]
    return int(((red > 120) & (red > 2 * green) & (red > 2 * blue)).sum())


def dark_pixels(picture: np.ndarray) -> int:
    """How much of a picture is as dark as a robot; the ground is white."""
    return int((picture.max(axis=2) < 110).sum())


@contextlib.contextmanager
def browser_page() -> Iterator[LivePage]:
    """An empty page of a headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=SOFTWARE_WEBGL)
        try:
            yield LivePage(browser.new_page(viewport=SIZE))
        finally:
            browser.close()
