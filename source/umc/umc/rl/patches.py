# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Patches of rsl_rl 5: its runner runs no code from the file of a UMC policy, and learns in several processes."""

from __future__ import annotations

from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

from umc.rl.checkpoint import read_checkpoint
from umc.utils.distributed import connected, ranks_from_env
from umc.utils.errors import UmcError


def patch_rsl_rl_load(model_class: type) -> None:
    """Let ``OnPolicyRunner.load`` read the checkpoint of a policy of ``model_class`` with :func:`read_checkpoint`.

    What: ``./isaaclab.sh play`` and ``train --checkpoint`` of Isaac Lab make an ``OnPolicyRunner``, whatever the task.
    Why: it calls ``torch.load(..., weights_only=False)``, which runs any code that the file names.
    The patch: the same three lines after another reader. Runners of other models are left alone.
    When it can go: once rsl_rl loads with ``weights_only=True``, or Isaac Lab lets a task name its runner class.
    """
    original = OnPolicyRunner.load

    def load(
        self: OnPolicyRunner,
        path: str,
        load_cfg: dict | None = None,
        strict: bool = True,
        map_location: str | None = None,
    ) -> dict[str, Any] | None:
        """Load the models and training state from a given path."""
        if not isinstance(self.alg.get_policy(), model_class):
            return original(self, path, load_cfg, strict, map_location)
        data = read_checkpoint(path, map_location or "cpu")  # Adam's counters stay there
        if self.alg.load(data, load_cfg, strict):
            self.current_learning_iteration = data["iter"]
        return data.get("infos")

    OnPolicyRunner.load = load


def configure_rsl_rl(runner: Any) -> None:
    """Configure several processes in rsl_rl's runner, on a CPU, too.

    What: stands in for ``OnPolicyRunner._configure_multi_gpu``.
    Why: rsl_rl 5.5.1 demands the device ``cuda:<local rank>`` and NCCL, and opens the process group itself, when the
    run's folder and its first checkpoint have to be agreed upon long before.
    When it can go: once rsl_rl takes the process group that is there.
    """
    ranks = ranks_from_env()
    runner.gpu_world_size, runner.gpu_global_rank = ranks.world_size, ranks.rank
    runner.is_distributed = ranks.is_distributed
    runner.cfg["multi_gpu"] = None
    if not ranks.is_distributed:
        return
    if not connected():
        raise UmcError("several processes, but no connection: call umc.utils.distributed.connect before the runner")
    runner.cfg["multi_gpu"] = {
        "global_rank": ranks.rank,
        "local_rank": ranks.local_rank,
        "world_size": ranks.world_size,
    }
    if runner.device.startswith("cuda"):
        torch.cuda.set_device(runner.device)
