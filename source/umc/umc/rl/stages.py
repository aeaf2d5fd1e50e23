# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""From Stage 1 to Stage 2: names, where checkpoints are, and what passes from one to the other."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from umc.rl.checkpoint import CheckpointInfo, checkpoint_info, checkpoints_in, read_checkpoint, require_match
from umc.rl.mlp_critic import is_mlp
from umc.rl.pretrained import shipped_policy
from umc.rl.privileged_critic import widened
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES, experiment_folder, experiment_name

if TYPE_CHECKING:
    from umc.rl.runner import TrainingRun

HEALTHY_FLAG = -1.0
"""The fault flag of a robot without a detected fault."""

FLAG_READERS = ("core.layers.0", "core.context")
"""Linear layers whose last columns are the flag: the MLP's first and the transformer's context token."""


def newest_checkpoint(experiment: Path) -> Path | None:
    """Last checkpoint of the run that wrote one most recently.

    Args:
        experiment: Folder of the experiment's runs.

    Returns:
        The checkpoint, or None where there is none.
    """
    if not experiment.is_dir():
        return None
    last = [files[-1] for run in experiment.iterdir() if (files := checkpoints_in(run))]
    # the name breaks the tie of two files written within one tick of the clock
    return max(last, key=lambda path: (path.stat().st_mtime_ns, path.parent.name), default=None)


def shipped_checkpoint(robot: str, agent: str) -> Path | None:
    """Stage 1 checkpoint that came with the package, or None where there is none."""
    return shipped_policy(robot, agent, 1)


def find_stage1(logs: Path, robot: str, agent: str, library: str = LIBRARIES[0], shipped: bool = True) -> Path | None:
    """Checkpoint that Stage 2 starts from: the library's newest of Stage 1 under ``logs``, else the shipped one.

    Args:
        logs: Folder of all runs.
        robot: Robot in lower case.
        agent: Agent whose Stage 1 it is (:attr:`umc.rl.agents.AgentSpec.stage1`).
        library: RL library of Stage 2; what the other one trained has to be given with ``--checkpoint``.
        shipped: Whether a shipped one will do.

    Returns:
        The checkpoint, or None where Stage 1 has to be trained first.
    """
    own = newest_checkpoint(experiment_folder(logs, experiment_name(robot, agent, 1), library))
    return own or (shipped_checkpoint(robot, agent) if shipped else None)


def hand_over(runner: TrainingRun, path: Path, robot: str, model: str) -> CheckpointInfo:
    """Start a stage from the weights of another.

    Actor and critic take the weights bit by bit, and iterations are counted from 0. What else starts afresh is the
    agent's ``hand_over`` (:class:`umc.tasks.ppo.HandOverCfg`): by default the optimizer with its learning rate, the
    action noise, which goes back to the actor's ``init_std``, and the weights of the fault flag.

    Args:
        runner: Runner of the new stage.
        path: Checkpoint to start from.
        robot: Robot of the new stage's task.
        model: Model of the new stage's agent.

    Returns:
        What the checkpoint says about itself.

    Raises:
        UmcError: If it belongs to another robot or model, its weights or joints do not fit, or it lacks what is not to
            start afresh.
    """
    data = read_checkpoint(path)
    info = checkpoint_info(data, path)
    require_match(info, path, robot, model)
    if runner.info is not None and list(info.joint_names) != list(runner.info.joint_names):
        raise UmcError(f"{path} was trained with other joints or another joint order; train Stage 1 again")
    fresh: dict[str, bool] = runner.cfg["hand_over"]
    needed = ["critic_state_dict"] if fresh["reset_optimizer"] else ["critic_state_dict", "optimizer_state_dict"]
    missing = [name for name in needed if name not in data]
    if missing:
        raise UmcError(f"{path} has no {' and no '.join(missing)}; give a checkpoint as scripts/train.py writes it")
    if is_mlp(data["critic_state_dict"]) != is_mlp(runner.alg.save()["critic_state_dict"]):
        raise UmcError(
            f"the critic of {path} is another kind of network; repeat its run's agent.mlp_critic, true or false"
        )
    optimizer = not fresh["reset_optimizer"]
    if runner.cfg.get("critic_sees_faults"):
        if optimizer:
            raise UmcError(
                "agent.critic_sees_faults needs a fresh optimizer; drop agent.hand_over.reset_optimizer=false"
            )
        data["critic_state_dict"] = widened(data["critic_state_dict"], runner.alg.save()["critic_state_dict"])
    runner.load(
        str(path), load_cfg={"actor": True, "critic": True, "optimizer": optimizer, "iteration": False}, data=data
    )
    runner.current_learning_iteration = 0
    if fresh["reset_optimizer"]:
        _reset_optimizer(runner)
    if fresh["reset_noise"]:
        _reset_noise(runner)
    if fresh.get("neutral_flag") and info.stage == 1:
        _make_flag_neutral(runner)
    return info


def _reset_optimizer(runner: TrainingRun) -> None:
    runner.alg.learning_rate = runner.cfg["algorithm"]["learning_rate"]
    runner.alg.optimizer.state.clear()
    for group in runner.alg.optimizer.param_groups:
        group["lr"] = runner.alg.learning_rate


def _make_flag_neutral(runner: TrainingRun) -> None:
    """Fold what Stage 1's constant flag did into the bias: what a raised one does is for Stage 2 to learn."""
    import torch

    from umc.models.layout import FAULT_FLAG_WIDTH

    policy = runner.alg.get_policy()
    if not getattr(getattr(policy, "core", None), "flagged", False):
        return
    modules = dict(policy.named_modules())
    layer: torch.nn.Linear = next(modules[name] for name in FLAG_READERS if name in modules)
    with torch.no_grad():
        layer.bias += HEALTHY_FLAG * layer.weight[:, -FAULT_FLAG_WIDTH:].sum(1)
        layer.weight[:, -FAULT_FLAG_WIDTH:] = 0.0


def _reset_noise(runner: TrainingRun) -> None:
    import torch

    distribution = runner.alg.get_policy().distribution
    if distribution is None:
        return
    init_std = runner.cfg["actor"]["distribution_cfg"]["init_std"]
    with torch.no_grad():
        for name, parameter in distribution.named_parameters():
            parameter.fill_(math.log(init_std) if name == "log_std_param" else init_std)
