# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Simulates an evaluation on the workers of a Ray cluster: each starts this repository's script with a share of it.

A Ray task starts a process of its own for each simulation, with a CPU and, where the
cluster has them, a GPU reserved. Workers need this package in their Python, but no shared disk: checkpoints travel to
them, and finished batches travel back.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import umc
from umc.evaluation.batches import PARTIAL, code_fingerprint
from umc.evaluation.compare import Comparison, Unit
from umc.utils.errors import UmcError
from umc.utils.executor import RAY_PACKAGE, check_address

if TYPE_CHECKING:
    from collections.abc import Sequence


RETRIES = 2
"""How often a share is started again whose machine went away."""

LAST_LINES = 5
"""Lines of a failed worker's output that the error quotes."""


def simulate_on_ray(comparison: Comparison, units: Sequence[Unit], arguments: Sequence[str]) -> None:
    """Simulate batches on a cluster; each is kept as soon as its share is back."""
    if importlib.util.find_spec("ray") is None:
        raise UmcError(f"--ray needs Ray, which is not installed; pip install '{RAY_PACKAGE}', or leave --ray out")
    address = comparison.session.options.ray_address
    if address is not None:
        check_address(address)
    ray: Any = importlib.import_module("ray")

    options = comparison.session.options
    workers = min(options.ray, len(units))
    try:
        if address is None:
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, configure_logging=False)
        else:
            ray.init(address=address, log_to_driver=False)
        gpus = 1 if ray.cluster_resources().get("GPU") else 0
        work = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(run_share)
        job = _job(comparison, arguments)
        shares = [list(units)[number::workers] for number in range(workers)]
        print(f"{len(units)} batches on {workers} workers of Ray", flush=True)
        pending = {
            work.remote({**job, "units": [(unit.policy, unit.batch) for unit in share]}): share for share in shares
        }
        while pending:
            (done, *_), _ = ray.wait(list(pending))
            _collect(pending.pop(done), ray.get(done))
            print(f"{len(pending)} of {workers} workers still at work", flush=True)
    except (ConnectionError, ray.exceptions.RayError) as error:
        raise UmcError(f"Ray: {str(error).strip().splitlines()[-1]}; finished batches are kept") from error
    finally:
        ray.shutdown()


def _job(comparison: Comparison, arguments: Sequence[str]) -> dict[str, Any]:
    """Everything that a worker needs, in plain values and bytes."""
    candidates = []
    for one in comparison.session.candidates:
        params = one.path.parent / "params" / "agent.yaml"
        candidates.append((one.path.name, one.path.read_bytes(), params.read_bytes() if params.is_file() else None))
    return {
        "arguments": list(arguments),
        "candidates": candidates,
        "plan": {
            "protocol": comparison.protocol.describe(),
            "episodes": comparison.batches.episodes,
            "num_envs": comparison.batches.num_envs,
        },
        "code": code_fingerprint(Path(umc.__file__).parent),
    }


def run_share(job: dict[str, Any]) -> dict[str, Any]:
    """What a worker does: a process of its own simulates the units."""
    if code_fingerprint(Path(umc.__file__).parent) != job["code"]:
        return {"error": "a worker has another version of umc; install the same one on all machines"}
    with tempfile.TemporaryDirectory(prefix="umc_evaluation_") as name:
        folder = Path(name)
        checkpoints = []
        for number, (file, weights, agent) in enumerate(job["candidates"]):
            path = folder / str(number) / file
            path.parent.mkdir()
            path.write_bytes(weights)
            if agent is not None:
                (path.parent / "params").mkdir()
                (path.parent / "params" / "agent.yaml").write_bytes(agent)
            checkpoints.append(str(path))
        plan = folder / "plan.json"
        plan.write_text(json.dumps({**job["plan"], "units": job["units"]}), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "umc",
            "evaluate",
            *job["arguments"],
            "--plan",
            str(plan),
            "--out",
            str(folder / "out"),
        ]
        done = subprocess.run([*command, "--checkpoint", *checkpoints], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.strip()][-LAST_LINES:]
            return {"error": f"a worker ended with {done.returncode}: {' | '.join(lines)}"}
        files = [folder / "out" / PARTIAL / f"{policy}_{batch}.pt" for policy, batch in job["units"]]
        return {"parts": [file.read_bytes() for file in files]}


def _collect(units: Sequence[Unit], result: dict[str, Any]) -> None:
    """Keep what a worker brought."""
    from umc.utils.io import atomic_write

    if "error" in result:
        raise UmcError(result["error"])
    for unit, part in zip(units, result["parts"], strict=True):
        with atomic_write(unit.path) as file:
            file.write(part)
