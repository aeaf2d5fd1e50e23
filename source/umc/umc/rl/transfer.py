# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Start a stage from Stage 1 weights, or turn them into a baseline and back: ``fold: true`` of a recipe.

In Stage 1 no joint is masked and the fault flag is always -1, so the flag's weights act as a constant. Folded into the
bias they leave the network of normal training, with the same outputs: UMC and its baseline can share a Stage 1, and the
baseline continues with ``train.py --agent nm_<network> --checkpoint <file>`` for as many iterations as UMC's Stage 2.
A checkpoint of the baseline becomes a Stage 1 of UMC: its network gets a flag without effect.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.rl.agents import AGENTS, BASELINE_PREFIX, EXTENSION_NETWORKS
from umc.rl.checkpoint import (
    CheckpointInfo,
    checkpoint_info,
    newest_checkpoint,
    read_checkpoint,
    require_match,
)
from umc.rl.critics import is_mlp_critic, widen_critic
from umc.rl.pretrained import pretrained_file
from umc.utils.config import override_key
from umc.utils.errors import UmcError
from umc.utils.naming import LIBRARIES, entry_point, experiment_folder, experiment_name

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from umc.rl.runner import TrainingRunner

HEALTHY_FLAG = -1.0
"""Fault flag of a robot without a detected fault."""

NEW_OPTIMIZER = "needs a new optimizer; drop agent.stage1_transfer.reset_optimizer=false"

FLAG_READERS = ("core.layers.0", "core.context")
"""Linear layers whose last columns read the flag in files of UMC's own networks (``MaskedCore.flag_layer``)."""


def find_stage1(
    logs: Path, robot: str, agent: str, library: str = LIBRARIES[0], pretrained: bool = True
) -> Path | None:
    """Return the checkpoint that Stage 2 starts from: the newest of Stage 1 under ``logs``, else the pretrained one."""
    own = newest_checkpoint(experiment_folder(logs, experiment_name(robot, agent, 1), library))
    return own or (pretrained_file(robot, agent, 1) if pretrained else None)


def load_stage1_weights(runner: TrainingRunner, path: Path, robot: str, model: str) -> None:
    """Start a stage from the weights of another; iterations are counted from 0.

    Actor and critic take the weights bit by bit. The agent's ``stage1_transfer``
    (:class:`umc.tasks.ppo.Stage1TransferCfg`) says what else is reset: by default the optimizer with its learning rate,
    the action noise (to the actor's ``init_std``), and the weights of the fault flag. An actor that reads no flag
    (``agent.obs_groups.actor``) starts from a Stage 1 that does: the flag's effect on healthy robots is folded in.
    """
    data = read_checkpoint(path)
    info = checkpoint_info(data, path)
    require_match(info, path, robot, model)
    if runner.info is not None and list(info.joint_names) != list(runner.info.joint_names):
        raise UmcError(f"{path} was trained with other joints or another joint order; train Stage 1 again")
    resets: dict[str, bool] = runner.cfg["stage1_transfer"]
    keep_optimizer = not resets["reset_optimizer"]
    needed = ["critic_state_dict", *(["optimizer_state_dict"] if keep_optimizer else [])]
    missing = [name for name in needed if name not in data]
    if missing:
        raise UmcError(f"{path} has no {' and no '.join(missing)}; give a checkpoint as umc train writes it")
    critic = runner.alg.save()["critic_state_dict"]
    if is_mlp_critic(data["critic_state_dict"]) != is_mlp_critic(critic):
        raise UmcError(
            f"the critic of {path} is another kind of network; repeat its run's agent.mlp_critic, true or false"
        )
    if runner.cfg.get("critic_sees_faults"):
        data["critic_state_dict"] = _widened_critic(runner, data["critic_state_dict"], critic)
    if info.stage == 1:
        _leave_out_flag(runner, data["actor_state_dict"])
    parts = {"actor": True, "critic": True, "optimizer": keep_optimizer, "iteration": False}
    runner.load(str(path), load_cfg=parts, data=data)
    runner.current_learning_iteration = 0
    if resets["reset_optimizer"]:
        runner.alg.optimizer.state.clear()
        _reset_learning_rate(runner)
    if resets["reset_noise"]:
        _reset_noise(runner)
    if resets.get("neutral_flag") and info.stage == 1:
        _neutralize_flag(runner)


def apply_changes(runner: TrainingRunner, keys: Collection[str]) -> None:
    """Give a resumed run the learning rate and action noise among ``keys``, in place of its checkpoint's."""
    if "agent.algorithm.learning_rate" in keys:
        _reset_learning_rate(runner)
    if "agent.actor.distribution_cfg.init_std" in keys:
        _reset_noise(runner)


def fold_flag_into_bias(data: Mapping[str, Any], path: Path | str) -> dict[str, Any]:
    """Turn a Stage 1 checkpoint into the baseline's: without mask and flag, same outputs on healthy robots."""
    info = checkpoint_info(data, path)
    name = BASELINE_PREFIX + info.model
    if info.stage != 1:
        raise UmcError(f"{path} has seen faults (Stage {info.stage}): give a checkpoint of Stage 1")
    if name not in AGENTS or info.model in EXTENSION_NETWORKS:
        raise UmcError(
            f"{path} holds the {info.model} model, which has no baseline {name} of UMC; give one of UMC's Stage 1"
        )
    actor = dict(data["actor_state_dict"])
    _fold_layer(actor, _required_flag_reader(actor, path))
    return _as_stage1(data, path, info, name, actor)


def add_neutral_flag(data: Mapping[str, Any], path: Path | str) -> dict[str, Any]:
    """Turn a baseline's checkpoint into a Stage 1 of UMC: with mask and flag, same outputs on healthy robots."""
    import torch

    from umc.faults import FAULT_FLAG_WIDTH

    info = checkpoint_info(data, path)
    name = info.model.removeprefix(BASELINE_PREFIX)
    if name == info.model or name not in AGENTS or name in EXTENSION_NETWORKS:
        raise UmcError(f"{path} holds the {info.model} model, which is no baseline; give one of a nm_<network>")
    actor = dict(data["actor_state_dict"])
    layer = _required_flag_reader(actor, path)
    weight = actor[f"{layer}.weight"]
    actor[f"{layer}.weight"] = torch.cat((weight, weight.new_zeros(len(weight), FAULT_FLAG_WIDTH)), dim=1)
    return _as_stage1(data, path, info, name, actor)


def _as_stage1(
    data: Mapping[str, Any], path: Path | str, info: CheckpointInfo, model: str, actor: dict[str, Any]
) -> dict[str, Any]:
    """Return a checkpoint with another actor, as Stage 1 of that model."""
    if "critic_state_dict" not in data:
        raise UmcError(f"{path} has no critic, without which no training can start from it; give its run's checkpoint")
    experiment = experiment_name(info.robot, model, 1)
    changed = dataclasses.replace(
        info,
        model=model,
        agent=entry_point(model),
        experiment=experiment,
        # a baseline has no mask
        network_overrides=[one for one in info.network_overrides if override_key(one) != "agent.actor.mask_value"],
    )
    return {
        "actor_state_dict": actor,
        "critic_state_dict": data["critic_state_dict"],
        "iter": data["iter"],
        "infos": {**data["infos"], "umc": dataclasses.asdict(changed)},
    }


def _fold(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Split the flag's columns off the weights of a linear layer, and add their constant effect to its bias."""
    from umc.faults import FAULT_FLAG_WIDTH

    sensors, flag = weight[:, :-FAULT_FLAG_WIDTH], weight[:, -FAULT_FLAG_WIDTH:]
    return sensors, bias + HEALTHY_FLAG * flag.sum(1)


def _fold_layer(actor: dict[str, Any], layer: str) -> None:
    sensors, bias = _fold(actor[f"{layer}.weight"].double(), actor[f"{layer}.bias"].double())
    actor |= {f"{layer}.weight": sensors.float(), f"{layer}.bias": bias.float()}


def _required_flag_reader(actor: Mapping[str, Any], path: Path | str) -> str:
    layer = next((name for name in FLAG_READERS if f"{name}.weight" in actor), None)
    if layer is None:
        raise UmcError(f"{path} has none of the layers {', '.join(FLAG_READERS)}: train it again with this version")
    return layer


def _widened_critic(runner: TrainingRunner, critic: dict[str, Any], wider: Mapping[str, Any]) -> dict[str, Any]:
    """Give a critic of Stage 1 columns for the faults, unless it has them already."""
    if all(name not in wider or value.shape == wider[name].shape for name, value in critic.items()):
        return critic
    check_widening(runner.cfg)
    return widen_critic(critic, wider)


def check_widening(cfg: Mapping[str, Any]) -> None:
    """Raise UmcError if an agent's critic cannot be shown the faults when its Stage 1 did not see them."""
    if not cfg["stage1_transfer"]["reset_optimizer"]:
        raise UmcError(f"agent.critic_sees_faults {NEW_OPTIMIZER}")
    if (flag := cfg["critic"].get("flag_group")) in cfg["obs_groups"]["critic"]:
        raise UmcError(
            f"agent.critic_sees_faults: the critic's Stage 1 reads {flag}, beside which no column can be "
            "added; leave it out of agent.obs_groups.critic in both stages"
        )


def reads_flag(cfg: Mapping[str, Any]) -> bool:
    """Return whether an agent's actor reads the fault flag."""
    return cfg["actor"].get("flag_group") in cfg["obs_groups"]["actor"]


def check_flagless(cfg: Mapping[str, Any]) -> None:
    """Raise UmcError if an agent's actor cannot leave out the flag that its Stage 1 reads."""
    if not cfg["stage1_transfer"]["reset_optimizer"]:
        raise UmcError(f"an actor without the fault flag of its Stage 1 {NEW_OPTIMIZER}")


def _leave_out_flag(runner: TrainingRunner, actor: dict[str, Any]) -> None:
    """Fold the flag of a Stage 1 actor into the bias if the runner's actor reads none."""
    from umc.faults import FAULT_FLAG_WIDTH

    core: Any = getattr(runner.alg.get_policy(), "core", None)
    if core is None or core.flagged or core.flag_layer is None:
        return
    weight = actor.get(f"core.{core.flag_layer}.weight")
    own: torch.nn.Linear = core.get_submodule(core.flag_layer)
    if weight is not None and weight.shape[1] == own.in_features + FAULT_FLAG_WIDTH:
        check_flagless(runner.cfg)
        _fold_layer(actor, f"core.{core.flag_layer}")


def _neutralize_flag(runner: TrainingRunner) -> None:
    """Fold the flag of the runner's actor into the bias: Stage 2 starts with a raised flag that has no effect."""
    import torch

    core: Any = getattr(runner.alg.get_policy(), "core", None)
    if not getattr(core, "flagged", False):
        return
    if core.flag_layer is None:
        name = type(core).__name__
        text = f"{name} names no flag_layer: the fault flag keeps the untrained weights of Stage 1"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return
    layer: torch.nn.Linear = core.get_submodule(core.flag_layer)
    with torch.no_grad():
        sensors, bias = _fold(layer.weight, layer.bias)
        layer.bias.copy_(bias)
        layer.weight[:, sensors.shape[1] :] = 0.0


def _reset_learning_rate(runner: TrainingRunner) -> None:
    runner.alg.learning_rate = runner.cfg["algorithm"]["learning_rate"]
    for group in runner.alg.optimizer.param_groups:
        group["lr"] = runner.alg.learning_rate


def _reset_noise(runner: TrainingRunner) -> None:
    import torch

    distribution = runner.alg.get_policy().distribution
    if distribution is None:
        return
    init_std = runner.cfg["actor"]["distribution_cfg"]["init_std"]
    with torch.no_grad():
        for name, parameter in distribution.named_parameters():
            parameter.fill_(math.log(init_std) if name == "log_std_param" else init_std)
