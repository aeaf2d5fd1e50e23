# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Rules that hold for the repository as a whole."""

from __future__ import annotations

import os
import re
import subprocess
import time
import tomllib
from pathlib import Path

import pytest
import umc
import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
LARGEST_FILE = 2_000_000
"""Most bytes of a tracked file; larger ones belong into a release."""
HEADER = ("# Copyright (c) 2026, The UMC Developers.", "# SPDX-License-Identifier: BSD-3-Clause")

TRACKED = [
    REPOSITORY / name
    for name in subprocess.run(
        ["git", "-c", f"safe.directory={REPOSITORY}", "ls-files", "-z"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    if name and (REPOSITORY / name).is_file()
]


def found(pattern: str) -> list[str]:
    """The lines of tracked text files that match a pattern."""
    expression = re.compile(pattern)
    texts = {path: data.decode() for path in TRACKED if b"\0" not in (data := path.read_bytes())[:8192]}
    return [
        f"{path}: {line.strip()}"
        for path, text in texts.items()
        for line in text.splitlines()
        if expression.search(line)
    ]


def test_no_path_of_a_machine():
    # Written in parts, so that this file does not match itself.
    places = ["/ro" + "ot/", "/wo" + "rk/", "/ho" + r"me/\w", "/Us" + r"ers/\w", "/tm" + "p/lab", "/mn" + r"t/\w"]
    assert found(r"(?<![\w.$}/-])(" + "|".join(places) + ")") == []


def test_no_package_index():
    # the user's own pip and uv settings say where packages come from
    options = ["--index" + "-url", "--extra-index" + "-url", "--find" + "-links", "--default" + "-index"]
    hosts = [r"files\.python" + "hosted", r"https?://\S*/simp" + r"le\b"]  # the page of a project may be linked
    assert found(r"(?<!no-emit)(" + "|".join(options + hosts) + ")") == []


def test_the_lock_pins_what_is_asked_for_with_hashes():
    def normal(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    text = (REPOSITORY / "requirements.lock").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    pinned = [re.fullmatch(r"(\S+)==(\S+)( +--hash=sha256:[0-9a-f]{64})+", line) for line in lines]
    assert [line for line, match in zip(lines, pinned, strict=True) if not match] == []
    locked = {normal(match[1]): match[2] for match in pinned if match}
    asked = [line.partition("#")[0].strip() for line in (REPOSITORY / "requirements.in").read_text().splitlines()]
    asked += tomllib.loads((REPOSITORY / "source/umc/pyproject.toml").read_text())["project"]["dependencies"]
    for requirement in filter(None, asked):
        match = re.match(r"([\w.-]+)(?:\[[\w,-]+\])?(?:==([\w.]+))?", requirement)
        assert match, requirement
        name, version = match.groups()
        assert normal(name) in locked, f"{name} is not in requirements.lock: run the command in requirements.in"
        assert version in (None, locked[normal(name)]), requirement


def test_no_file_is_large_and_python_files_have_the_header():
    assert [str(path) for path in TRACKED if path.stat().st_size > LARGEST_FILE] == []
    python = [path for path in TRACKED if path.suffix == ".py"]
    assert [str(path) for path in python if tuple(path.read_text().splitlines()[:2]) != HEADER] == []


def test_versions_agree():
    headings = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    citation = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert headings[0] == citation["version"] == umc.__version__
    keys = [tuple(map(int, version.split("."))) for version in headings]
    assert keys == sorted(set(keys), reverse=True)


def test_programs_can_be_started():
    programs = ["isaaclab.sh", ".ci/run", ".ci/check", "docker/install.sh", "docker/health.sh", "docs/build.sh"]
    assert [name for name in programs if not os.access(REPOSITORY / name, os.X_OK)] == []


def other_process(physics: str, exit_code: int = 0, size: int = 1, sleep_s: float = 0.0) -> dict[str, object]:
    """Scenario of `test_run_engine_starts_a_process_and_reports_its_end`."""
    time.sleep(sleep_s)
    if exit_code:
        os._exit(exit_code)
    return {"pid": os.getpid(), "physics": physics, "list": [0.5] * size}


def test_run_engine_starts_a_process_and_reports_its_end(run_engine):
    result = run_engine(other_process, physics="ovphysx", size=3)
    assert (result["physics"], result["list"]) == ("ovphysx", [0.5, 0.5, 0.5])
    assert result["pid"] != os.getpid()
    with pytest.raises(pytest.fail.Exception, match="other_process on newton_mjwarp: 3"):
        run_engine(other_process, exit_code=3)
    with pytest.raises(pytest.fail.Exception, match="TypeError: can't multiply"):
        run_engine(other_process, size="no number")
    with pytest.raises(pytest.fail.Exception, match="no end after 1 s"):
        run_engine(other_process, sleep_s=60.0, timeout=1)
