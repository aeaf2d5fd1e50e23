# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of all tests, and `run_engine`, which runs a physics engine in a process of its own."""

from __future__ import annotations

import inspect
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Before torch and numpy are imported: one thread each, which is fastest for small tensors.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)

# fakes that tests of several folders share, and the tools, which are not in the wheel
HERE = Path(__file__).resolve().parent
SUPPORT = str(HERE / "support")
sys.path[:0] = [SUPPORT, str(HERE.parent)]

SEED = 20260
"""Seed of the generators before every test."""

ENGINE_TIMEOUT_S = 300.0
"""Longest run of one engine scenario [s]; the first start on a machine compiles Warp kernels (20-40 s)."""

# What the child of `run_engine` runs: call one function of a file and write its result as JSON. It ends by os._exit,
# since the teardown of an engine may hang.
_CHILD = """
import importlib.util, json, os, sys, traceback
file, name, out, arguments = sys.argv[1:]
status = 1
try:
    spec = importlib.util.spec_from_file_location("engine_scenario", file)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = getattr(module, name)(**json.loads(arguments))
    with open(out, "w") as stream:
        json.dump(result, stream)
    status = 0
except BaseException:
    traceback.print_exc()
finally:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
"""


LONG = ("engine", "slow", "install")
"""Markers of the tests that only the full tier runs, unless they are also marked ``core``."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`./isaaclab.sh -t --all` runs the full tier."""
    parser.addoption("--all", action="store_true", help="run every test, with the long ones (the full tier)")


def in_default_tier(item: pytest.Item) -> bool:
    """Whether a test is quick, or one of the few long ones that every run has."""
    return item.get_closest_marker("core") is not None or not any(item.get_closest_marker(name) for name in LONG)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long tests to the full tier, unless asked for by path or marker; files with an engine come first."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    if not (config.getoption("--all") or config.getoption("-m") or named):
        config.hook.pytest_deselected(items=[item for item in items if not in_default_tier(item)])
        items[:] = [item for item in items if in_default_tier(item)]
    # a slow file at the end would occupy one worker while the other waits
    items.sort(key=lambda item: not any(item.get_closest_marker(name) for name in LONG))


@pytest.fixture(autouse=True)
def seeded():
    """Start every test from the same generators."""
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)


@pytest.fixture(scope="session")
def run_engine(tmp_path_factory) -> Callable[..., Any]:
    """Run an engine scenario in a process of its own: one process can hold one engine and one environment.

    `run_engine(scenario, physics="newton_mjwarp", timeout=300.0, **kwargs)` calls `scenario(physics=..., **kwargs)` in
    a fresh Python and returns what it returns. `scenario` is a function at the top level of a test module; arguments
    and result go through JSON (numbers, strings, lists, dicts: use `.tolist()`). An exception, a crash or a run past
    `timeout` [s] fails the test with the end of its output.
    """

    def run(
        scenario: Callable[..., Any], physics: str = "newton_mjwarp", timeout: float = ENGINE_TIMEOUT_S, **kwargs: Any
    ) -> Any:
        folder = tmp_path_factory.mktemp("engine")
        file, name = inspect.getfile(scenario), scenario.__name__
        out, log = folder / "result.json", folder / "output.txt"
        arguments = json.dumps({"physics": physics, **kwargs})
        paths = [SUPPORT, str(HERE.parent), os.environ.get("PYTHONPATH", "")]  # tools are no installed package
        with log.open("w") as stream:
            child = subprocess.Popen(
                [sys.executable, "-c", _CHILD, file, name, str(out), arguments],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,
            )
            try:
                status: int | str = child.wait(timeout)
            except subprocess.TimeoutExpired:
                status = f"no end after {timeout:.0f} s"
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
        if status != 0:
            pytest.fail(f"{name} on {physics}: {status}\n{log.read_text()[-6000:]}", pytrace=False)
        return json.loads(out.read_text())

    return run
