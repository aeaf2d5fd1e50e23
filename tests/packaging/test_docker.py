# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What Dockerfiles, Compose files and the scripts in them have to agree on. No Docker engine is needed."""

from __future__ import annotations

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
    """Instructions of a Dockerfile as (name, rest), continued lines joined, comments gone."""
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [(line.split()[0], " ".join(line.split()[1:])) for line in text.splitlines() if line.strip()]


def copied(rest: str) -> list[str]:
    """Sources of a COPY."""
    return [word for word in rest.split() if not word.startswith("--")][:-1]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_image_runs_as_the_user_of_the_host(path: Path):
    users = [rest for name, rest in instructions(path) if name == "USER"]
    assert users[-1] == "${UMC_UID}:${UMC_GID}"
    defaults = dict(rest.split("=") for name, rest in instructions(path) if name == "ARG")
    arguments = COMPOSE["x-umc"]["build"]["args"]
    for argument in ("UMC_UID", "UMC_GID"):
        assert arguments[argument] == f"${{{argument}:-{defaults[argument]}}}"


def test_base_images_are_arguments_with_one_default():
    overlay = yaml.safe_load((DOCKER / "compose.isaacsim.yaml").read_text())
    for path, compose in (
        (DOCKER / "Dockerfile", COMPOSE["x-umc"]),
        (DOCKER / "Dockerfile.isaacsim", overlay["x-isaacsim"]),
    ):
        steps = instructions(path)
        assert steps[0][0] == "ARG"
        assert steps[1] == ("FROM", "${BASE_IMAGE}")
        default = steps[0][1].removeprefix("BASE_IMAGE=")
        assert compose["build"]["args"]["BASE_IMAGE"].endswith(f":-{default}}}")
        assert compose["build"]["dockerfile"] == str(path.relative_to(REPOSITORY))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_volumes_are_made_in_the_image(path: Path):
    # A folder that the image lacks would be made by root, and the user could not write into its volume.
    targets = [volume.rsplit(":", 1)[1] for volume in COMPOSE["x-umc"]["volumes"]]
    assert len(targets) == 3
    text = " ".join(rest for name, rest in instructions(path) if name == "RUN")
    made = re.findall(r"mkdir -p ([^&;]+)", text)[0].split()
    folder = next(rest for name, rest in instructions(path) if name == "WORKDIR")
    assert {str(Path(folder, name)) for name in made} >= set(targets)
    owned = re.findall(r"chown -R \S+ ([^&;]+)", text)[0].split()
    for target in targets:
        assert any(Path(target).is_relative_to(Path(folder, name)) for name in owned), target


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_caches_are_in_volumes(path: Path):
    targets = [volume.rsplit(":", 1)[1] for volume in COMPOSE["x-umc"]["volumes"]]
    text = " ".join(rest for name, rest in instructions(path) if name == "ENV")
    caches = dict(re.findall(r"(\w*CACHE\w*)=(\S+)", text))
    assert set(caches) == {"WARP_CACHE_PATH", "CUDA_CACHE_PATH", "UV_CACHE_DIR", "PIP_CACHE_DIR"}
    for place in caches.values():
        assert any(Path(place).is_relative_to(target) for target in targets), place


def test_environment_is_made_from_what_its_fingerprint_reads():
    # Otherwise the first start in the container would install anew, or a changed source would.
    launcher = (REPOSITORY / "isaaclab.sh").read_text()
    read = re.findall(r'"\$root/([\w./]+)"', re.findall(r"^fingerprint\(\) \{\n(.*?)^\}", launcher, re.M | re.S)[0])
    assert len(read) == 2
    steps = instructions(DOCKER / "Dockerfile")
    install = next(i for i, (name, rest) in enumerate(steps) if name == "RUN" and "install.sh environment" in rest)
    before = [source for name, rest in steps[:install] if name == "COPY" for source in copied(rest)]
    assert set(before) == {"docker/install.sh", "isaaclab.sh", "source/umc/umc/__init__.py", *read}
    assert ("COPY", "--chown=umc:umc . .") in steps[install:]


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_whatever_is_copied_exists(path: Path):
    for name, rest in instructions(path):
        if name == "COPY":
            for source in copied(rest):
                assert (REPOSITORY / source).exists(), source


def test_nothing_that_git_ignores_gets_into_an_image():
    ignored = [line for line in (REPOSITORY / ".gitignore").read_text().splitlines() if line and line[0] != "#"]
    kept_out = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert ".git" in kept_out
    for line in ignored:
        name = line.strip("/")
        assert name in kept_out or f"**/{name}" in kept_out, f".dockerignore lacks {name}"


def test_services():
    assert set(COMPOSE["services"]) == SERVICES
    for overlay in OVERLAYS:
        assert set(yaml.safe_load(overlay.read_text())["services"]) == SERVICES, overlay.name
    started = [name for name, service in COMPOSE["services"].items() if "profiles" not in service]
    assert started == ["viewer"], "`docker compose up` starts the viewer and nothing else"
    assert "deploy" not in (DOCKER / "compose.yaml").read_text(), "a GPU is for compose.gpu.yaml to ask for"


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_commands_of_services(name: str):
    service = COMPOSE["services"][name]
    for word in (*service["entrypoint"], *service["command"]):
        if "/" in word and not word.startswith("logs/"):
            assert (REPOSITORY / word.removeprefix("--ignore=")).exists(), word


def test_viewer_is_reached_on_this_machine_alone():
    viewer = COMPOSE["services"]["viewer"]
    assert viewer["ports"] == ["${UMC_VIEWER:-127.0.0.1:8080}:8080"]
    words = " ".join(viewer["entrypoint"])
    assert words.endswith("--viz viser --host 0.0.0.0 --port 8080"), (
        "from outside its container nobody reaches localhost"
    )
    assert viewer["healthcheck"]["test"][-2:] == ["port", "8080"]


def test_commands_in_the_page_are_those_of_the_files():
    page = (REPOSITORY / "docs/docker.md").read_text()
    commands = [
        shlex.split(line.partition("  #")[0])
        for block in re.findall(r"```bash\n(.*?)```", page, re.S)
        for line in block.replace("\\\n", " ").splitlines()
        if "docker compose" in line
    ]
    assert len(commands) >= 6
    for words in commands:
        while re.fullmatch(r"\w+=\S*", words[0]):
            assert words[0].split("=")[0] in "".join(path.read_text() for path in [DOCKER / "compose.yaml", *OVERLAYS])
            words = words[1:]
        files = [words[i + 1] for i, word in enumerate(words) if word == "-f"]
        assert all((DOCKER / file).exists() for file in files), words
        named = [word for word in words if word in SERVICES]
        assert named or words[-1] in {"down", "--volumes", "build"}, words


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The scripts with a launcher that is this test's Python."""
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


def test_health_of_the_environment(checkout: Path):
    assert run(checkout, "health.sh").returncode == 0
    (checkout / ".venv/.umc-stamp").write_text("unfinished")
    result = run(checkout, "health.sh")
    assert (result.returncode, result.stdout) == (1, "unhealthy: an install into .venv was interrupted\n")
    (checkout / ".venv/.umc-stamp").unlink()
    assert run(checkout, "health.sh").stdout == "unhealthy: no environment\n"


def test_health_of_a_training(checkout: Path):
    assert run(checkout, "health.sh", "training").returncode == 1
    log = checkout / "logs/rsl_rl/run/events"
    log.parent.mkdir(parents=True)
    log.touch()
    assert run(checkout, "health.sh", "training").returncode == 0
    half_an_hour_ago = time.time() - 1800
    os.utime(log, (half_an_hour_ago, half_an_hour_ago))
    assert run(checkout, "health.sh", "training").stdout == "unhealthy: no file under logs has changed for 10 minutes\n"
    assert run(checkout, "health.sh", "training", "60").returncode == 0


def test_health_of_a_port(checkout: Path):
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = str(server.server_address[1])
        assert run(checkout, "health.sh", "port", port).returncode == 0
        server.shutdown()
    result = run(checkout, "health.sh", "port", port)
    assert (result.returncode, result.stdout) == (1, f"unhealthy: nothing answers on port {port}\n")


@pytest.mark.parametrize("script", ["health.sh", "install.sh"])
def test_wrong_use_of_the_scripts(checkout: Path, script: str):
    result = run(checkout, script, "enviroment")
    assert result.returncode == 2
    assert result.stderr.startswith("error: unknown ")
    assert result.stderr.count("\n") == 1
