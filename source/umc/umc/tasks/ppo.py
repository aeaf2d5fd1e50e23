# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Make agent cfgs from the table of agents; a robot adds its joints, their columns and its initial action noise."""

import dataclasses
import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from isaaclab.assets import ArticulationCfg
from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlMLPModelCfg, RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg

from umc.rl.agents import AGENTS, BASELINE_PREFIX, EXTENSION_NETWORKS, AgentSpec
from umc.rl.model_cfg import (
    DistillationCfg,
    UmcBodyTransformerModelCfg,
    UmcGruModelCfg,
    UmcMlpModelCfg,
    UmcModelCfg,
    UmcMultiTaskModelCfg,
    UmcTransformerModelCfg,
)
from umc.robots.graph import joint_neighbours
from umc.tasks.device import DEFAULT_DEVICE
from umc.utils.errors import UmcError
from umc.utils.naming import experiment_name

CFG_NAME = re.compile(r"(\w+)_stage([12])")
"""Names that a task module resolves to agent cfgs: agent and stage."""

CRITIC_GROUPS = ["critic"]
"""Observation groups of the critic: true values and no mask (paper, "Actor Model")."""

AWARE_GROUPS = ["policy", "joint_mask", "fault_flag"]
"""Observation groups of a UMC actor."""

UNAWARE_GROUPS = ["policy"]
"""Observation groups of a baseline's actor: dead sensors read 0 there, too, but no mask marks them."""


@configclass
class Stage1TransferCfg:
    """What a run resets when it starts from the actor and critic of Stage 1."""

    reset_noise: bool = True
    """Whether the action noise is reset to the actor's ``init_std``, so that the new stage explores again."""

    reset_optimizer: bool = True
    """Whether the optimizer and its learning rate are reset."""

    neutral_flag: bool = True
    """Whether a raised fault flag has no effect at first. Stage 1 never raises it: its effect is random, and makes a
    robot fall that would have kept walking."""


@configclass
class UmcPpoRunnerCfg(RslRlOnPolicyRunnerCfg):
    """The PPO of legged_gym, which the paper trains with."""

    num_steps_per_env = 24
    save_interval = 50
    algorithm = RslRlPpoAlgorithmCfg(
        value_loss_coef=1.0,
        use_clipped_value_loss=True,
        clip_param=0.2,
        entropy_coef=0.01,
        num_learning_epochs=5,
        num_mini_batches=4,
        learning_rate=1.0e-3,
        schedule="adaptive",
        gamma=0.99,
        lam=0.95,
        desired_kl=0.01,
        max_grad_norm=1.0,
    )
    stage1_transfer: Stage1TransferCfg = Stage1TransferCfg()

    distillation: DistillationCfg = DistillationCfg()

    critic_sees_faults: bool = False
    """Whether the critic observes every fault (:mod:`umc.rl.critics`); the paper's does not."""

    mlp_critic: bool = False
    """Whether the critic is an MLP whatever the actor is (:mod:`umc.rl.critics`); the paper's is like the actor."""

    curriculum_iterations: int = 0
    """Iterations that a curriculum agent's stages are spread over; 0: those of the run. For runs in several phases."""

    severity_iterations: int = 0
    """Iterations over which severities grow from those of healthy joints to the task's; 0: they do not grow."""

    sample_failures: bool = False
    """Whether subcategories are drawn the more often, the more robots fall in them."""

    bfloat16: bool = False
    """Whether factors of the networks' matrix products are rounded to bfloat16 while a CPU trains; sums and everything
    else stay float32 (``umc.utils.matmul``)."""

    mirror: bool = False
    """Whether mirrored samples are added to every mini-batch (:mod:`umc.rl.symmetry`); the paper does not say so."""

    mirror_loss: float = 1.0
    """Weight of the mean squared difference [-] between the actions on mirrored samples and the mirrored actions, with
    :attr:`mirror`. PPO assumes that mirrored samples are as likely as the true ones: without this term a policy that
    loses its symmetry, as in Stage 2 where masks and flag are new, diverges (docs/training_guide.md)."""

    def __post_init__(self) -> None:
        """Learn on the first GPU where there is one, so that Isaac Lab's own commands start on any machine."""
        self.device = DEFAULT_DEVICE


@dataclasses.dataclass(frozen=True)
class Network:
    """How the networks of an agent are made."""

    cfg: type[UmcModelCfg]
    """Model cfg class of actor and critic."""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Fields that differ from the cfg's defaults."""
    aware: bool = True
    """Whether the actor reads mask and flag."""
    graph: bool = False
    """Whether it needs the robot's joint graph."""
    critic: type[UmcModelCfg] | None = None
    """Model cfg class of the critic, where it is another one."""
    groups: Mapping[str, Sequence[str]] = dataclasses.field(default_factory=dict)
    """Observation groups of ``actor`` and ``critic``, where they are others."""
    joint_start: int | None = None
    """Column of the first joint position in these groups."""
    init_std: float | None = None
    """Standard deviation of the action noise at the start [-], where it is not the robot's."""


SMALL32 = {"embed_dim": 32, "feedforward_dim": 64, "num_layers": 2}
"""About ten times as fast to train on a CPU as the paper's sizes."""

SMALL64 = {"embed_dim": 64, "feedforward_dim": 128, "num_layers": 2}
"""About six times as fast."""

_AWARE = {
    "transformer": Network(UmcTransformerModelCfg),
    "mlp": Network(UmcMlpModelCfg),
    "gru": Network(UmcGruModelCfg, critic=UmcMlpModelCfg),
    "transformer_small32": Network(UmcTransformerModelCfg, SMALL32),
    "transformer_small64": Network(UmcTransformerModelCfg, SMALL64),
}

NETWORKS = {
    **_AWARE,
    **{f"{BASELINE_PREFIX}{name}": dataclasses.replace(network, aware=False) for name, network in _AWARE.items()},
    "body_transformer": Network(UmcBodyTransformerModelCfg, aware=False, graph=True),
    "mt_ftc": Network(
        UmcMultiTaskModelCfg,
        groups=dict.fromkeys(("actor", "critic"), ("policy", "fault_class")),
        joint_start=6,
        init_std=1.0,
    ),
}
"""Networks by the name that :class:`umc.rl.agents.AgentSpec` gives them."""


def network_of(spec: AgentSpec) -> Network:
    """Return the network of an agent, one of UMC's or of the package that registered the agent."""
    entry = EXTENSION_NETWORKS.get(spec.network)
    if entry is None:
        return NETWORKS[spec.network]
    module, name = entry.split(":")
    return getattr(importlib.import_module(module), name)


@dataclasses.dataclass(frozen=True)
class RobotAgents:
    """The robot data that all its agents share."""

    robot: str
    """Robot in lower case."""
    articulation: ArticulationCfg
    """The robot's cfg, for the order of its joints and their graph."""
    actor_joint_start: int
    """Column of the first joint position in ``policy``."""
    init_std: float
    """Standard deviation of the action noise at the start [-]."""
    critic_joint_start: int = 12
    """Column of the first joint position in ``critic``, as :class:`umc.tasks.base.CriticTermsCfg` has it."""

    @property
    def joint_names(self) -> list[str]:
        """The task's joints in the order of its observations; UmcError if the robot's cfg does not say it."""
        names = self.articulation.joint_ordering
        if not isinstance(names, list | tuple):
            raise UmcError(
                f"joint_ordering of {self.robot}'s cfg is {names!r}; set it to the list of the robot's joints"
            )
        return list(names)

    def cfg(self, name: str) -> UmcPpoRunnerCfg:
        """Return a new cfg by its entry point name, ``<agent>_stage<1|2>``.

        Raises:
            AttributeError: If there is no such agent, or it is not trained in that stage.
        """
        match = CFG_NAME.fullmatch(name)
        spec = AGENTS.get(match[1]) if match else None
        if match is None or spec is None or not spec.trains(self.robot, int(match[2])):
            raise AttributeError(f"{self.robot} has no agent cfg {name}")
        network, noise = network_of(spec), RslRlMLPModelCfg.GaussianDistributionCfg
        shared: dict[str, Any] = {"joint_names": self.joint_names, **network.options}
        if network.graph:
            shared["neighbours"] = joint_neighbours(self.articulation, self.joint_names)
        groups = {"actor": AWARE_GROUPS if network.aware else UNAWARE_GROUPS, "critic": CRITIC_GROUPS, **network.groups}
        return UmcPpoRunnerCfg(
            experiment_name=experiment_name(self.robot, spec.name, int(match[2])),
            max_iterations=spec.iterations,
            obs_groups={reader: list(read) for reader, read in groups.items()},
            actor=network.cfg(
                joint_start=self.actor_joint_start if network.joint_start is None else network.joint_start,
                distribution_cfg=noise(init_std=network.init_std or self.init_std),
                mask_value=spec.mask_value,
                **shared,
            ),
            critic=(network.critic or network.cfg)(
                joint_start=self.critic_joint_start if network.joint_start is None else network.joint_start,
                distribution_cfg=None,
                **shared,
            ),
        )
