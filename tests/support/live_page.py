# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``scripts/play.py --viz viser`` in a process of its own, and its page in a real Chromium.

``./isaaclab.sh -p tests/support/live_page.py`` takes ``docs/images/viewer.png``.
"""

import contextlib
import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 500
"""Longest start of the engine and longest wait for the page [s]; both take seconds on an idle machine."""

NUMBER_BOX = ".mantine-NumberInput-input"
"""The number beside a slider; that of the severity is the first, those of the command follow."""

SIZE = {"width": 1440, "height": 840}
"""Of the page [px]."""

CROP = (slice(75, None), slice(175, 520))
"""Its 3D part in a screenshot of half the size."""

SOFTWARE_WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
"""Chromium draws without a GPU."""


@dataclass
class Viewer:
    process: subprocess.Popen
    log: Path
    url: str

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def interrupt(self) -> int:
        """Press Ctrl-C and return the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(TIMEOUT_S)


@contextlib.contextmanager
def viewer(folder: Path, *arguments: str) -> Iterator[Viewer]:
    """Start the viewer and wait until it serves its page."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "viewer.txt"
    command = [sys.executable, str(ROOT / "scripts/play.py"), "--viz", "viser", "--port", str(port), *arguments]
    with log.open("w") as stream:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
            # a job in the background of a shell ignores Ctrl-C, and so are its children
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
    try:
        running, until = Viewer(process, log, ""), time.monotonic() + TIMEOUT_S
        while "viewer: http" not in running.output():
            assert process.poll() is None, f"the viewer ended with {process.returncode}:\n{running.output()[-4000:]}"
            assert time.monotonic() < until, f"no page after {TIMEOUT_S} s:\n{running.output()[-4000:]}"
            time.sleep(0.2)
        running.url = running.output().split("viewer: ")[1].split()[0]
        yield running
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class LivePage:
    """What a user does in the page."""

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
        """Close what viser says about drawing without a GPU, if it does."""
        self.page.evaluate(
            "() => document.querySelectorAll('.mantine-Notification-closeButton').forEach(button => button.click())"
        )

    def choose(self, label: str, option: str) -> None:
        self.page.get_by_label(label, exact=True).click()
        self.page.get_by_role("option", name=option, exact=True).click()

    def choose_fault(self, kind: str, severity: float) -> None:
        """Choose a kind and wait until its slider is there, at a severity."""
        self.choose("Fault", kind)
        self.page.locator("code").get_by_text(kind, exact=True).wait_for()
        self.page.wait_for_function(
            f"severity => {{ const boxes = [...document.querySelectorAll('{NUMBER_BOX}')]"
            ".filter(box => box.offsetParent).map(box => parseFloat(box.value));"
            " return boxes.length == 4 && boxes[0] == severity; }",
            arg=severity,
        )

    def press(self, button: str) -> None:
        self.page.get_by_role("button", name=button, exact=True).click()

    def set_severity(self, value: float) -> None:
        self.set_number(0, value)

    def set_number(self, number: int, value: float) -> None:
        """Type a value into one of the visible boxes."""
        box = self.page.locator(f"{NUMBER_BOX}:visible").nth(number)
        box.fill(str(value))
        box.press("Enter")
        # viser's page sends numbers a moment later: its own clock waits, however busy the machine is
        self.page.evaluate("() => new Promise(done => setTimeout(done, 500))")

    def row(self, joint: str) -> list[str]:
        """Cells of a joint in the table of faults."""
        return self.page.locator(f'#umc-faults tr[data-joint="{joint}"] td').all_inner_texts()

    def wait_for_row(self, joint: str, text: str) -> None:
        self.page.wait_for_function(
            "([joint, text]) => document.querySelector(`#umc-faults tr[data-joint=${joint}]`).innerText.includes(text)",
            arg=[joint, text],
        )

    def wait_for_limit(self, quantity: str, limit: float) -> None:
        """Wait until the page shows an upper limit and a value within the limits."""
        self.page.wait_for_function(
            "([name, limit]) => { const [now, min, max] = [...document.querySelector("
            "`#umc-now tr[data-quantity=${name}]`).cells].slice(1).map(cell => parseFloat(cell.innerText));"
            " return Math.abs(max - limit) < 0.006 && min <= now && now <= max; }",
            arg=[quantity, limit],
        )

    def screenshot(self) -> Image.Image:
        return Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")

    def wait_for_picture(self, seen: Callable[[np.ndarray], bool]) -> np.ndarray:
        """Wait until the 3D part of the page, shape (height, width, 3), shows something: it is drawn in idle time."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            picture = np.asarray(self.screenshot())[CROP].astype(int)
            if seen(picture):
                return picture
            assert time.monotonic() < deadline, "the picture does not change"
            self.page.wait_for_timeout(300)


def red_pixels(picture: np.ndarray) -> int:
    """Pixels of a broken link."""
    red, green, blue = picture[..., 0], picture[..., 1], picture[..., 2]
    return int(((red > 120) & (red > 2 * green) & (red > 2 * blue)).sum())


def dark_pixels(picture: np.ndarray) -> int:
    """Pixels of a robot; floor and sky are lighter."""
    return int((picture.max(axis=2) < 130).sum())


@contextlib.contextmanager
def browser_page(scale: float = 0.5) -> Iterator[LivePage]:
    """Open an empty page in a headless Chromium; at half the scale a CPU draws it four times as fast."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert path, "no Chromium to open the viewer with; install one: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=SOFTWARE_WEBGL)
        try:
            yield LivePage(browser.new_page(viewport=SIZE, device_scale_factor=scale))
        finally:
            browser.close()


def take_picture(path: Path) -> None:
    """Take the picture of the docs: a transformer, for its attention map, and faults with which A1 keeps walking."""
    policy = ("--checkpoint", "pretrained:a1_transformer_small32_stage2", "--scenario", "8")
    with (
        tempfile.TemporaryDirectory() as folder,
        viewer(Path(folder), *policy, "physics=ovphysx", "env.scene.terrain=flat") as running,
        browser_page(scale=1.0) as live,
    ):
        live.open(running.url)
        live.close_notes()
        for joint, kind, first, severity in (("RR_thigh_joint", "bias", 0.3, 0.1), ("FR_calf_joint", "effort", 8, 14)):
            live.choose("Joint", joint)
            live.choose_fault(kind, first)
            live.set_severity(severity)
            live.press("Break")
            live.wait_for_row(joint, kind)
        live.wait_for_limit("torque", 14)
        live.page.get_by_role("tab", name="Attention").click()
        live.page.wait_for_timeout(2500)
        live.press("Pause Simulation")  # what a CPU draws late catches up
        live.page.locator("#umc-faults").evaluate("table => table.scrollIntoView({block: 'start'})")
        live.page.mouse.move(SIZE["width"] / 2, SIZE["height"] / 2)
        live.page.wait_for_timeout(4000)
        live.screenshot().quantize(128).save(path, optimize=True)  # the README loads it


if __name__ == "__main__":
    take_picture(ROOT / "docs/images/viewer.png")
