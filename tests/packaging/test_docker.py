# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Dockerfiles, Compose files and their scripts agree with each other. No Docker engine is needed."""

from __future__ import annotations

import functools
import http.server
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
DOCKER = REPOSITORY / "docker"
DOCKERFILES = sorted(DOCKER.glob("Dockerfile*"))
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
OVERLAYS = [path for path in sorted(DOCKER.glob("compose.*.yaml")) if path.name != "compose.yaml"]
SERVICES = {"train", "play", "test", "viewer"}


def instructions(path: Path) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile as (name, rest)."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [(line.split()[0], " ".join(line.split()[1:])) for line in text.splitlines() if line.strip()]


def copied(rest: str) -> list[str]:
    """Return the sources of a COPY."""
    return [word for word in rest.split() if not word.startswith("--")][:-1]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_the_image_runs_as_the_user_of_the_host_who_owns_its_volumes_and_caches(path: Path):
    assert [rest for name, rest in instructions(path) if name == "USER"][-1] == "${UMC_UID}:${UMC_GID}"
    defaults = dict(rest.split("=") for name, rest in instructions(path) if name == "ARG")
    for argument in ("UMC_UID", "UMC_GID"):
        assert COMPOSE["x-umc"]["build"]["args"][argument] == f"${{{argument}:-{defaults[argument]}}}"
    # Docker creates a folder that the image lacks as root, and the user could not write into its volume.
    targets = [volume.rsplit(":", 1)[1] for volume in COMPOSE["x-umc"]["volumes"]]
    run, env = (" ".join(rest for name, rest in instructions(path) if name == wanted) for wanted in ("RUN", "ENV"))
    folder = next(rest for name, rest in instructions(path) if name == "WORKDIR")
    made = re.findall(r"mkdir -p ([^&;]+)", run)[0].split()
    owned = re.findall(r"chown -R \S+ ([^&;]+)", run)[0].split()
    assert {str(Path(folder, name)) for name in made} >= set(targets)
    for target in targets:
        assert any(Path(target).is_relative_to(Path(folder, name)) for name in owned), target
    caches = dict(re.findall(r"(\w*CACHE\w*)=(\S+)", env))
    assert set(caches) == {"WARP_CACHE_PATH", "CUDA_CACHE_PATH", "UV_CACHE_DIR", "PIP_CACHE_DIR"}
    for place in caches.values():
        assert any(Path(place).is_relative_to(target) for target in targets), place


def test_environment_is_made_from_what_its_fingerprint_reads():
    # otherwise the first start in the container, or a changed source, would install again
    launcher = (REPOSITORY / "isaaclab.sh").read_text()
    read = re.findall(r'"\$root/([\w./]+)"', re.findall(r"^fingerprint\(\) \{\n(.*?)^\}", launcher, re.M | re.S)[0])
    assert len(read) == 2
    steps = instructions(DOCKER / "Dockerfile")
    install = next(i for i, (name, rest) in enumerate(steps) if name == "RUN" and "install.sh environment" in rest)
    before = [source for name, rest in steps[:install] if name == "COPY" for source in copied(rest)]
    launched = {"isaaclab.sh", "requirements-uv.lock", *read}
    assert set(before) == {"docker/install.sh", "source/umc/umc/__init__.py", *launched}
    assert ("COPY", "--chown=umc:umc . .") in steps[install:]
    copies = [rest for path in DOCKERFILES for name, rest in instructions(path) if name == "COPY"]
    assert [source for rest in copies for source in copied(rest) if not (REPOSITORY / source).exists()] == []


def test_nothing_that_git_ignores_gets_into_an_image():
    ignored = [line for line in (REPOSITORY / ".gitignore").read_text().splitlines() if line and line[0] != "#"]
    kept_out = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert ".git" in kept_out
    for line in ignored:
        name = line.strip("/")
        assert name in kept_out or f"**/{name}" in kept_out, f".dockerignore lacks {name}"


def test_services_name_files_that_exist_and_the_viewer_is_published_to_this_machine_alone():
    for service in COMPOSE["services"].values():
        words = [*service["entrypoint"], *service["command"]]
        files = [word.removeprefix("--ignore=") for word in words if "/" in word and not word.startswith("logs/")]
        assert [file for file in files if not (REPOSITORY / file).exists()] == []
    for file in [DOCKER / "compose.yaml", *OVERLAYS]:
        assert set(yaml.safe_load(file.read_text())["services"]) == SERVICES, file.name
    started = [name for name, service in COMPOSE["services"].items() if "profiles" not in service]
    assert started == ["viewer"], "`docker compose up` starts the viewer and nothing else"
    viewer = COMPOSE["services"]["viewer"]
    assert viewer["ports"] == ["${UMC_VIEWER:-127.0.0.1:8080}:8080"]
    # inside its container, localhost cannot be reached from outside
    assert " ".join(viewer["entrypoint"]).endswith("--viz viser --host 0.0.0.0 --port 8080")


def test_commands_of_the_page_name_files_services_and_variables_that_exist():
    page = (REPOSITORY / "docs/docker.md").read_text().replace("\\\n", " ")
    files = "".join(path.read_text() for path in [DOCKER / "compose.yaml", *OVERLAYS])
    lines = re.findall(r"^(?:mkdir .* && )?((?:\w+=\S+ )*docker compose .*?)(?:  #.*)?$", page, re.MULTILINE)
    assert len(lines) >= 6
    for line in lines:
        variables, words = line.split("docker compose")[0], shlex.split(line.split("docker compose")[1])
        assert all(name in files for name in re.findall(r"(\w+)=", variables)), line
        assert all((DOCKER / words[i + 1]).exists() for i, word in enumerate(words) if word == "-f"), line
        assert SERVICES.intersection(words), line


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Copy the scripts beside a launcher that is this test's Python."""
    root = tmp_path / "check out"
    (root / "docker").mkdir(parents=True)
    (root / ".venv").mkdir()
    for name in ("health.sh", "install.sh"):
        shutil.copy(DOCKER / name, root / "docker")
    (root / ".venv/.umc-stamp").write_text("0" * 64)
    (root / "isaaclab.sh").write_text(
        f'#!/bin/bash\n[[ "$1" == -p ]] && exec "{sys.executable}" "${{@:2}}"\necho "$@"\n'
    )
    (root / "isaaclab.sh").chmod(0o755)
    return root


def run(root: Path, script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "ISAACLAB_PATH"}
    command = [str(root / "docker" / script), *arguments]
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True, check=False, timeout=60)


def health(root: Path, *arguments: str) -> tuple[int, str]:
    done = run(root, "health.sh", *arguments)
    return done.returncode, done.stdout.removeprefix("unhealthy: ").rstrip("\n")


def test_health_of_environment_and_training(checkout: Path):
    assert health(checkout)[0] == 0
    stamp = checkout / ".venv/.umc-stamp"
    stamp.write_text("unfinished")
    assert health(checkout) == (1, "an install into .venv was interrupted")
    stamp.unlink()
    assert health(checkout) == (1, "no environment")
    assert health(checkout, "training")[0] == 1
    log = checkout / "logs/rsl_rl/run/events"
    log.parent.mkdir(parents=True)
    log.touch()
    assert health(checkout, "training")[0] == 0
    half_an_hour_ago = time.time() - 1800
    os.utime(log, (half_an_hour_ago, half_an_hour_ago))
    assert health(checkout, "training") == (1, "no file under logs has changed for 10 minutes")
    assert health(checkout, "training", "60")[0] == 0


def test_health_of_a_port(checkout: Path, tmp_path: Path):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = str(server.server_address[1])
        assert health(checkout, "port", port)[0] == 0
        server.shutdown()
    assert health(checkout, "port", port) == (1, f"nothing answers on port {port}")


@pytest.mark.parametrize("script", ["health.sh", "install.sh"])
def test_wrong_use_of_the_scripts(checkout: Path, script: str):
    result = run(checkout, script, "enviroment")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith("error: unknown ")
