# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The install script of the Dockerfiles makes a whole environment from nothing but the files in git.

No Docker and no root: the libraries of the distribution (`install.sh system`) are those of this machine; a bare Debian
is what `docker/prove.sh` starts from. Packages come from uv's cache, which the environment of this test run has filled.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TIMEOUT_S = 1800
"""Longest install [s]: 45 s of processor time with a full cache, and 11 min on two cores that 20 programs shared."""


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """Copy the tracked files as they are now, without an environment."""
    root = tmp_path / "umc"
    listed = ["git", "-c", f"safe.directory={REPOSITORY}", "ls-files", "-z"]
    for name in subprocess.run(listed, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split("\0"):
        if name and (REPOSITORY / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, root / name, follow_symlinks=False)
    yield root
    shutil.rmtree(root)  # 9 GB by name: most of them are links into the cache


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the clone outside of the environment that runs this test."""
    own = {"VIRTUAL_ENV", "CONDA_PREFIX", "ISAACLAB_PATH", "ISAAC_PATH", "ISAACSIM_PATH", "PYTHONPATH"}
    environment = {name: value for name, value in os.environ.items() if name not in own}
    # A Python 3.12 to start from and, where this checkout has fetched one, its uv; nothing else of its environment.
    folders = [os.path.dirname(os.path.realpath(sys.executable)), *environment["PATH"].split(os.pathsep)]
    if (REPOSITORY / ".venv.uv/bin").exists():
        folders.append(str(REPOSITORY / ".venv.uv/bin"))
    venv = str(Path(sys.prefix) / "bin")
    environment["PATH"] = os.pathsep.join(folder for folder in folders if folder != venv)
    return subprocess.run(
        command, cwd=root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S
    )


@pytest.mark.install
@pytest.mark.timeout(TIMEOUT_S)
def test_install_script_makes_an_environment_that_passes_tests(clone: Path):
    assert not (clone / ".venv").exists()
    result = run(clone, "docker/install.sh", "environment", "check")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert "umc: the environment is ready" in result.stderr
    assert re.match(r"\d+ passed", result.stdout.splitlines()[-1]), result.stdout[-3000:]
    where = run(clone, "./isaaclab.sh", "-p", "-c", "import umc, sys; print(umc.__file__, sys.prefix)")
    assert where.stdout.split() == [str(clone / "source/umc/umc/__init__.py"), str(clone / ".venv")]
    assert run(clone, "docker/health.sh").returncode == 0


@pytest.mark.install
@pytest.mark.timeout(TIMEOUT_S)
def test_a_wheel_works_outside_the_repository(tmp_path: Path):
    """Beside the environment's other packages: lists, help and an evaluation of a pretrained policy."""
    site, place = tmp_path / "site", tmp_path / "place"
    place.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "120"}

    def python(*arguments: str, cwd: Path = place) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    source = tmp_path / "source"
    unwanted = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    shutil.copytree(REPOSITORY / "source/umc", source, ignore=unwanted)
    build = "from setuptools.build_meta import build_wheel; print(build_wheel('..'))"
    wheel = tmp_path / python("-c", build, cwd=source).splitlines()[-1]
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert {path.name for path in (site / "umc/rl/data").iterdir()} == {
        path.name for path in (REPOSITORY / "source/umc/umc/rl/data").iterdir()
    }
    assert (site / "umc/py.typed").is_file()
    assert Path(python("-c", "import umc; print(umc.__file__)").strip()).is_relative_to(site)
    listed = python("-m", "umc", "list")
    for name in ("UMC-G1-Stage2", "pretrained:a1_mlp_stage2", "umc_paper", "a1_mlp_cpu"):
        assert name in listed
    for command in ("train", "evaluate", "play", "export", "sim2sim"):
        assert python("-m", "umc", command, "--help").startswith(f"usage: umc {command}")
    assert "umc train --task UMC-A1-Stage1" in python("-m", "umc", "recipe", "a1_mlp_cpu", "--show")
    sizes = ("--quick", "--num_envs", "8", "--device", "cpu", "env.scene.terrain=flat")
    out = python("-m", "umc", "evaluate", "--checkpoint", "pretrained:solo8_mlp_stage2", *sizes, "--out", "out")
    assert "engine: ovphysx, which the policy was trained on" in out
    assert (place / "out/report.html").is_file()
