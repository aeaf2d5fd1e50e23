# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Shell scripts, Dockerfiles, Compose files and workflows pass their linters.

The linters come with the environment (requirements.in) as wheels with the program inside; none needs a network.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
SHELL_SCRIPTS = [
    path
    for folder in (".", ".ci", "docker", "docs", "scripts", "tests")
    for path in sorted((REPOSITORY / folder).iterdir())
    if path.is_file()
    and path.read_bytes()[:30].split(b"\n")[0] in (b"#!/usr/bin/env bash", b"#!/bin/bash", b"#!/bin/sh")
]
DOCKERFILES = sorted((REPOSITORY / "docker").glob("Dockerfile*"))
COMPOSE_FILES = sorted((REPOSITORY / "docker").glob("compose*.yaml"))


def assert_clean(program: str, *arguments: str | Path) -> None:
    """Run a linter of the environment at the root; actionlint finds shellcheck beside itself."""
    path = PROGRAMS / program
    assert path.exists(), f"{program} is missing; ./isaaclab.sh -i installs it"
    environment = {**os.environ, "PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    command = [str(path), *map(str, arguments)]
    result = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_shell_scripts():
    names = {str(path.relative_to(REPOSITORY)) for path in SHELL_SCRIPTS}
    assert names >= {"isaaclab.sh", ".ci/run", ".ci/check", "docker/install.sh", "docker/health.sh", "docker/prove.sh"}
    assert_clean("shellcheck", *SHELL_SCRIPTS)


def test_dockerfiles():
    assert {path.name for path in DOCKERFILES} == {"Dockerfile", "Dockerfile.isaacsim"}
    assert_clean("hadolint", "--no-color", *DOCKERFILES)


@pytest.mark.parametrize("path", COMPOSE_FILES, ids=lambda path: path.name)
def test_compose_files_follow_the_schema_of_the_compose_specification(path: Path):
    assert_clean("check-jsonschema", "--builtin-schema", "vendor.compose-spec", path)


def test_workflows():
    assert_clean("actionlint", "-no-color")


def test_actions():
    actions = sorted((REPOSITORY / ".github/actions").glob("*/action.yml"))
    assert actions
    assert_clean("check-jsonschema", "--builtin-schema", "vendor.github-actions", *actions)
