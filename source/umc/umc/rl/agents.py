# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""All agents as data: network, stages it is trained in, and changes of the environment.

Each robot has all of them (:func:`umc.tasks.registration.register_robot`) but MT-FTC, which is for Solo8 alone,
whichever RL library trains them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from umc.utils.naming import ENTRY_POINT

STAGE_ITERATIONS = 2500
"""Iterations of each stage (paper, table of the actor's parameters)."""

RATIOS_KEY = "events.faults.params.ratios"
"""Where a task's env cfg keeps the odds of normal, sensor-only, detectable and undetectable episodes."""

Ratios = tuple[float, float, float, float]
"""Odds of normal, sensor-only, detectable and undetectable episodes."""

RATIO_ABLATION: tuple[Ratios, ...] = (
    (1, 1, 1, 0),
    (1, 1, 0, 1),
    (1, 0, 1, 1),
    (0, 1, 1, 1),
    (1, 2, 2, 1),
    (1, 3, 3, 1),
)
"""Paper, table of Stage II environment settings; 1:1:1:1 is every other agent's."""

MASK_VALUE_ABLATION = (100, -100)
"""Paper, table of masking values; 0 is every other agent's."""

CURRICULUM: tuple[tuple[float, Ratios], ...] = (
    (0.00, (1, 0, 0, 0)),
    (0.25, (0, 0, 0, 1)),
    (0.50, (0, 1, 0, 0)),
    (0.75, (0, 0, 1, 0)),
)
"""Stages of the curriculum: start as a part of the run, and odds of no damage, sensor-only, detectable and undetectable
(paper, section "Paradigms"). The paper gives no lengths: each lasts a quarter."""

BASELINE_PREFIX = "nm_"
"""Prefix of a network's name where mask and flag are left out."""

LEGS = ("FL", "FR", "HL", "HR")

MT_FTC_ENV: dict[str, Any] = {
    "observations.policy": "mt_ftc",
    "observations.fault_class": "mt_ftc",
    "scene.robot.actuators.legs.stiffness": 3.0,
    "scene.robot.actuators.legs.damping": 0.3,
    "actions.joint_pos.scale": 0.25,
    "episode_length_s": 8.0,
    "commands.base_velocity.resampling_time_range": (8.0, 8.0),
    "commands.base_velocity.ranges.ang_vel_z": (-0.5, 0.5),
    # env by env: half are healthy, a quarter loses power and a quarter is locked
    "events.faults.params.scenario": ("normal", "normal", "power_loss", "rom"),
    "events.faults.params.joint_groups": {leg: (f"{leg}_.*",) for leg in LEGS},
    "events.faults.params.num_joints": (1, 1),
    "events.faults.params.severity.rom": 0.025,  # 0.05 pi of a range of 2 pi
    "events.faults.params.onset_range": (1, 100),
}
"""What MT-FTC changes in Solo8's Stage 2, after its public code (docs/models.md): gains [N*m/rad], [N*m*s/rad], action
scale, commands [s], [rad/s], and faults of both joints of a leg that set in while the robot walks."""


@dataclasses.dataclass(frozen=True)
class AgentSpec:
    """An agent."""

    name: str
    """As ``--agent`` takes it."""
    network: str
    """What checkpoints call the model: agents of one network can take each other's weights."""
    purpose: str
    """What it is for, in a few words."""
    stages: tuple[int, ...] = (1, 2)
    """Stages whose tasks it is trained in."""
    stage1: str | None = None
    """Agent whose Stage 1 its Stage 2 starts from; None: its training starts from scratch."""
    iterations: int = STAGE_ITERATIONS
    """Iterations of one of its stages."""
    mask_value: float = 0.0
    """What the actor reads of masked joints."""
    env_overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """What it changes in its Stage 2 task: value by path in the env cfg."""
    robots: tuple[str, ...] = ()
    """Robots (lower case) that have it; empty: all."""
    curriculum: tuple[tuple[float, Ratios], ...] = ()
    """Start of each stage as a part of the run, and its odds of faults; empty: they do not change."""

    def trains(self, robot: str, stage: int) -> bool:
        """Return whether it is trained on a robot (lower case) in a stage."""
        return stage in self.stages and robot in (self.robots or (robot,))

    def tokens(self, stage: int) -> list[str]:
        """Its changes of a stage's env cfg as override tokens, such as a command line has."""
        if stage == 1:
            return []
        return [f"env.{path}={_written(value)}" for path, value in self.env_overrides.items()]


def agent_spec(name: str) -> AgentSpec | None:
    """Return the agent behind an entry point name or a short name; None where there is none."""
    match = ENTRY_POINT.fullmatch(name)
    return AGENTS.get(match[2] if match else name)


def _written(value: Any) -> str:
    """Return a value as an override token writes it: without spaces, so that it can be pasted into a shell."""
    return value if isinstance(value, str) else repr(value).replace(" ", "")


def _umc(network: str, purpose: str) -> AgentSpec:
    return AgentSpec(network, network, purpose, stage1=network)


def _normal(network: str, purpose: str) -> AgentSpec:
    """No faults, no mask, no flag, and as many iterations as both stages of UMC."""
    return AgentSpec(network, network, purpose, stages=(1,), iterations=2 * STAGE_ITERATIONS)


def _ablations(network: str) -> Iterator[AgentSpec]:
    """Return the paper's ablations; those that start from Stage 1 take the one of the unchanged agent."""

    def vary(suffix: str, purpose: str, **fields: Any) -> AgentSpec:
        return AgentSpec(f"{network}_{suffix}", network, f"ablation: {purpose}", stages=(2,), **fields)

    yield vary("one_stage", "Stage 2 from scratch")
    yield vary("curriculum", "one kind of fault after another", iterations=2 * STAGE_ITERATIONS, curriculum=CURRICULUM)
    for ratios in RATIO_ABLATION:
        suffix = "ratio_" + "".join(str(ratio) for ratio in ratios)
        purpose = "odds of the four subcategories " + ":".join(str(ratio) for ratio in ratios)
        yield vary(suffix, purpose, stage1=network, env_overrides={RATIOS_KEY: tuple(map(float, ratios))})
    for value in MASK_VALUE_ABLATION:
        suffix = f"mask_{value}".replace("-", "minus_")
        yield vary(suffix, f"masked joints read {value}", stage1=network, mask_value=float(value))


_ALL = (
    _umc("transformer", "UMC, the paper's transformer"),
    _umc("mlp", "UMC, the paper's MLP"),
    _umc("gru", "UMC, the paper's MLP with a memory of the episode (a GRU, 128 wide)"),
    _umc("transformer_small32", "UMC, a transformer that a CPU can train: 32 wide, 2 layers"),
    _umc("transformer_small64", "UMC, a transformer that a CPU can train: 64 wide, 2 layers"),
    _normal("nm_transformer", "baseline: the paper's transformer, trained without faults, mask and flag"),
    _normal("nm_mlp", "baseline: the paper's MLP, trained without faults, mask and flag"),
    _normal("nm_gru", "baseline: the MLP with a memory, trained without faults, mask and flag"),
    _normal("nm_transformer_small32", "baseline: the 32 wide transformer, trained without faults, mask and flag"),
    _normal("nm_transformer_small64", "baseline: the 64 wide transformer, trained without faults, mask and flag"),
    _normal("body_transformer", "baseline: BodyTransformer, trained without faults, mask and flag"),
    AgentSpec(
        "mt_ftc",
        "mt_ftc",
        "baseline: MT-FTC, a head for each class of joint faults (Solo8 only)",
        stages=(2,),
        iterations=1000,
        env_overrides=MT_FTC_ENV,
        robots=("solo8",),
    ),
    *_ablations("transformer"),
    *_ablations("mlp"),
    *_ablations("transformer_small32"),
)

AGENTS: dict[str, AgentSpec] = {spec.name: spec for spec in _ALL}
"""All agents by name; the first is the default. Other packages add theirs by
:func:`umc.tasks.registration.register_agent`."""

EXTENSION_NETWORKS: dict[str, str] = {}
"""Where the networks of other packages' agents are, by :attr:`AgentSpec.network`: ``module:name`` of a
:class:`umc.tasks.ppo.Network`."""
