# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How fast a device steps a task as it is trained, and where the host waits for it."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from umc.evaluation.devices import SCALE
from umc.utils.config import FileModel, validated
from umc.utils.io import write_json
from umc.utils.text import read_json

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

WARM_UP, MEASURED = 25, 48
"""Env steps before the measurement, and of it."""

SYNC = "called a synchronizing CUDA operation"
"""Part of torch's warning."""


class Speed(FileModel):
    """What :func:`measure` wrote."""

    num_envs: int
    steps: int
    """Env steps that were measured."""
    seconds: float
    """Time that they took [s]."""
    waits: dict[str, int] | None
    """How often the host waited for the GPU in as many env steps, by place; None on a CPU."""
    gpu_bytes: int | None
    """GPU memory in use at the end, by all programs [byte]; None on a CPU."""
    graph: bool | None = None
    """Whether Newton's step was replayed as a CUDA graph; None on a CPU, and on PhysX."""

    @property
    def rate(self) -> float:
        """Env steps of all envs per second."""
        return self.num_envs * self.steps / self.seconds


def measure(env: ManagerBasedRLEnv, out: Path) -> None:
    """Step an environment under random actions, and write its :class:`Speed`."""
    is_cuda = torch.device(env.device).type == "cuda"
    shape = (env.num_envs, env.action_manager.total_action_dim)

    def steps(count: int) -> None:
        for _ in range(count):
            env.step(SCALE * torch.randn(shape, device=env.device))
        if is_cuda:
            torch.cuda.synchronize(env.device)

    env.reset()
    steps(WARM_UP)
    start = time.perf_counter()
    steps(MEASURED)
    seconds = time.perf_counter() - start
    waits, used, graph = None, None, None
    if is_cuda:
        found_graph: Any = getattr(env.sim.physics_manager, "_graph", False)
        graph = None if found_graph is False else found_graph is not None
        with counted_waits() as found:
            steps(MEASURED)
        waits = dict(found.most_common())
        free, total = torch.cuda.mem_get_info(env.device)
        used = total - free
    found_speed = {"num_envs": env.num_envs, "steps": MEASURED, "seconds": seconds}
    write_json(out, Speed(**found_speed, waits=waits, gpu_bytes=used, graph=graph).model_dump())


def read_speed(path: Path) -> Speed:
    """Read a file of :func:`measure`; raise UmcError if it is damaged."""
    return validated(Speed, read_json(path, "delete it and start again"), str(path))


@contextlib.contextmanager
def counted_waits() -> Iterator[Counter[str]]:
    """Count by place where torch makes the host wait for a GPU; waits of Warp and of the engines are not seen."""
    found: Counter[str] = Counter()

    def note(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if SYNC in str(message):
            found[_caller()] += 1
        else:
            show(message, category, *place, **more)

    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.filterwarnings("always", message=f".*{SYNC}")
        show = warnings.showwarning
        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode(before)


def _caller() -> str:
    """Return file, function and line of the innermost call that is neither torch's nor of the warning itself."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if "torch" not in file.parts and str(file) not in (__file__, warnings.__file__):
            parts = file.parts
            root = max((parts.index(name) for name in ("site-packages", "source") if name in parts), default=-1)
            return f"{Path(*parts[root + 1 :])} {frame.f_code.co_qualname}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"
