# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The arithmetic of a training on many GPUs: ``python -m umc.rl.cluster_plan --gpus 64 --robot g1``.

Counts (envs, samples, parameters, bytes) follow from the paper's tables and the agents' cfgs. Times need a rate, and no
GPU has run UMC yet: the default rates are public figures of another task, each with its source, and can be replaced.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence
from typing import Any

from umc.errors import UmcError
from umc.faults.paper import PAPER, paper_settings
from umc.rl.agents import AGENTS, AgentSpec, entry_point
from umc.rl.cli import Parser, at_least_one, did_you_mean

COLUMNS = {
    "a1": {"policy": 48, "joint_mask": 12, "fault_flag": 3, "critic": 64},
    "g1": {"policy": 47, "joint_mask": 12, "fault_flag": 3, "critic": 50},
    "h1": {"policy": 41, "joint_mask": 10, "fault_flag": 3, "critic": 44},
    "solo8": {"policy": 36, "joint_mask": 8, "fault_flag": 3, "critic": 48},
}
"""Observation columns of the tasks, to which ``tests/tasks/test_tasks_engine.py`` holds the engines."""

TASKS = {"a1": "A1", "g1": "G1", "h1": "H1", "solo8": "Solo8"}
"""Robots as task ids spell them."""

FLOAT = 4
"""Bytes of a float32."""

SCALARS_PER_SAMPLE = 6
"""Reward, done, value, return, advantage, log-probability: what rsl_rl's storage keeps beside observations, actions,
mean and standard deviation."""

ADAM_STATES = 2
"""Moments that Adam keeps of each parameter."""

FORWARD_MFLOP = {"transformer": 9.5, "mlp": 0.69}
"""Arithmetic of one forward pass of A1's actor [MFLOP], by the agent's network: two operations for each product of 13
tokens with the transformer's weights, or of one observation with the MLP's. Other robots differ by a few per cent."""

PUBLIC_SOURCE = (
    "Isaac Lab, docs/source/overview/reinforcement-learning/performance_benchmarks.rst: Isaac-Velocity-Rough-G1-v0, "
    "4,096 envs per L40, PhysX with Kit, rsl_rl's MLP"
)
"""Where the public figures stand. Another task, engine and network than UMC's: they stand in until a GPU is at hand."""

PUBLIC_ENVS = 4096
"""Envs of one GPU that the public figures are for; with fewer a GPU is not full and makes fewer steps a second."""

PUBLIC_TRAIN_RATE = 62_000.0
"""Env-steps/s of one L40 that simulates, acts and learns (:data:`PUBLIC_SOURCE`)."""

PUBLIC_ACT_RATE = 64_000.0
"""Env-steps/s of one L40 that simulates and acts."""

PUBLIC_MEMORY = 6.1e9
"""GPU memory of the public run with 4,096 envs [B], everything included: an upper bound per env where it is divided."""


@dataclasses.dataclass(frozen=True)
class ClusterPlan:
    """What a run on several GPUs amounts to."""

    robot: str
    agent: str
    gpus: int
    envs_per_gpu: int
    steps: int
    """Env steps of an iteration."""
    updates: int
    """Optimizer steps of an iteration: epochs x mini-batches."""
    epochs: int
    mini_batches: int
    iterations: int
    """Of all stages."""
    actor_parameters: int
    critic_parameters: int
    columns: int
    """Observation columns of actor and critic."""
    joints: int
    forward_mflop: float | None
    """Arithmetic of one forward pass of a network [MFLOP]; None where nobody has counted it."""

    @property
    def learning_tflop(self) -> float | None:
        """Arithmetic of one iteration on one GPU [TFLOP]: networks act once, and learn (forward, twice that back)."""
        if self.forward_mflop is None:
            return None
        return self.samples_per_gpu * 2 * self.forward_mflop * (1 + 3 * self.epochs) / 1e6

    @property
    def envs(self) -> int:
        """Envs of all GPUs."""
        return self.gpus * self.envs_per_gpu

    @property
    def samples(self) -> int:
        """Env steps of an iteration, over all envs."""
        return self.envs * self.steps

    @property
    def samples_per_gpu(self) -> int:
        """Those of one GPU."""
        return self.envs_per_gpu * self.steps

    @property
    def mini_batch(self) -> int:
        """Samples of one optimizer step, over all GPUs."""
        return self.samples // self.mini_batches

    @property
    def total_samples(self) -> int:
        """Env steps of the whole run."""
        return self.samples * self.iterations

    @property
    def parameters(self) -> int:
        """Parameters that have a gradient: actor with its action noise, and critic."""
        return self.actor_parameters + self.critic_parameters

    @property
    def gradient_bytes(self) -> int:
        """One gradient [B]."""
        return self.parameters * FLOAT

    @property
    def traffic_per_update(self) -> float:
        """What a GPU sends, and receives as much, to average one gradient [B]: a ring all-reduce, 2 (n - 1) / n."""
        return self.gradient_bytes * 2 * (self.gpus - 1) / self.gpus

    @property
    def traffic_per_iteration(self) -> float:
        """The same for one iteration [B]; learning rate and KL divergence add 8 bytes an update."""
        return self.traffic_per_update * self.updates

    @property
    def rollout_bytes(self) -> int:
        """What rsl_rl keeps of an iteration, on one GPU [B]."""
        return self.samples_per_gpu * (self.columns + 3 * self.joints + SCALARS_PER_SAMPLE) * FLOAT

    @property
    def checkpoint_bytes(self) -> int:
        """Weights and Adam's moments [B]; a few kB of random states and 8 bytes an env come on top."""
        return self.gradient_bytes * (1 + ADAM_STATES)

    def seconds_per_iteration(self, rate: float, full: int = PUBLIC_ENVS) -> float:
        """Time of an iteration [s]: samples of a GPU over its rate.

        A GPU that is not full is taken to need as long as a full one, as simulation on a GPU does until it is full; so
        this is no lower bound for few envs, but no promise either.

        Args:
            rate: Env-steps/s of one full GPU, learning included.
            full: Envs that fill it.

        Returns:
            The time.
        """
        return max(self.envs_per_gpu, full) * self.steps / rate


@dataclasses.dataclass(frozen=True)
class EvaluationPlan:
    """What the paper's evaluation of one policy amounts to."""

    cells: int
    """Scenarios x settings."""
    robots: int
    """Robots of each cell."""
    steps: int
    """Env steps of each robot."""

    @property
    def total_samples(self) -> int:
        """Env steps of all."""
        return self.cells * self.robots * self.steps


def plan_cluster(robot: str, agent: str, gpus: int, envs_per_gpu: int | None = None) -> ClusterPlan:
    """Work out a run on several GPUs.

    Args:
        robot: Robot in lower case.
        agent: The agent's short name.
        gpus: How many GPUs, one process each.
        envs_per_gpu: Envs of each; without it the paper's envs, dealt out evenly.

    Returns:
        The plan.

    Raises:
        UmcError: If there is no such robot or agent, or a number is below 1.
    """
    check_names(robot, agent)
    at_least_one(gpus, "--gpus")
    at_least_one(envs_per_gpu, "--envs_per_gpu")
    if envs_per_gpu is None:
        envs_per_gpu = math.ceil(paper_settings(robot, "training")["num_envs"] / gpus)
    spec = AGENTS[agent]
    actor, critic, cfg = _networks(robot, spec)
    algorithm = cfg["algorithm"]
    return ClusterPlan(
        robot=robot,
        agent=agent,
        gpus=gpus,
        envs_per_gpu=envs_per_gpu,
        steps=cfg["num_steps_per_env"],
        updates=algorithm["num_learning_epochs"] * algorithm["num_mini_batches"],
        epochs=algorithm["num_learning_epochs"],
        mini_batches=algorithm["num_mini_batches"],
        iterations=spec.iterations * (2 if spec.stage1 else 1),
        actor_parameters=actor,
        critic_parameters=critic,
        columns=sum(COLUMNS[robot].values()),
        joints=COLUMNS[robot]["joint_mask"],
        forward_mflop=FORWARD_MFLOP.get(spec.network.removeprefix("nm_")),
    )


def plan_evaluation(robot: str) -> EvaluationPlan:
    """Work out the paper's evaluation of one policy.

    Args:
        robot: Robot in lower case.

    Returns:
        The plan.
    """
    rows = paper_settings(robot, "inference")
    settings = rows["onset"] if isinstance(rows["onset"], list) else [rows["onset"]]
    return EvaluationPlan(len(PAPER["scenarios"]) * len(settings), rows["num_envs"], rows["episode_length"])


def check_names(robot: str, agent: str) -> None:
    """Refuse robots and agents that there are not.

    Raises:
        UmcError: If there is no such robot or agent.
    """
    if robot not in COLUMNS:
        raise UmcError(f"unknown robot {robot};{did_you_mean(robot, list(COLUMNS))} choose one of {', '.join(COLUMNS)}")
    if agent not in AGENTS:
        raise UmcError(f"unknown agent {agent};{did_you_mean(agent, list(AGENTS))} choose one of {', '.join(AGENTS)}")


def _networks(robot: str, spec: AgentSpec) -> tuple[int, int, dict[str, Any]]:
    """Parameters of actor and critic, and the agent's cfg: the networks are made and counted."""
    from umc.rl.cli import load_tasks
    from umc.rl.console import quiet
    from umc.rl.policy import ACTOR_SET, CRITIC_SET, build_model, registered_agent

    load_tasks()
    with quiet():
        cfg = registered_agent(f"UMC-{TASKS[robot]}-Stage{spec.stages[0]}", entry_point(spec.name))
    columns = COLUMNS[robot]
    actor = build_model(cfg, columns, columns["joint_mask"], ACTOR_SET)
    critic = build_model(cfg, columns, 1, CRITIC_SET)
    counts = [sum(weight.numel() for weight in network.parameters()) for network in (actor, critic)]
    return counts[0], counts[1], cfg


def describe(plan: ClusterPlan, evaluation: EvaluationPlan, rate: float, source: str) -> list[tuple[str, str]]:
    """The plan as rows of a table.

    Args:
        plan: Training.
        evaluation: Evaluation of one policy.
        rate: Env-steps/s of one full GPU that trains.
        source: Where the rate comes from.

    Returns:
        What, and how much with the arithmetic.
    """
    seconds = plan.seconds_per_iteration(rate)
    share = math.ceil(evaluation.total_samples / plan.gpus)
    kib, mib, gib = 2**10, 2**20, 2**30
    learning = "not counted for this network"
    if plan.learning_tflop is not None:
        learning = (
            f"{plan.samples_per_gpu:,} samples x 2 networks x {plan.forward_mflop} MFLOP x (1 + 3 x {plan.epochs}) = "
            f"{plan.learning_tflop:.2f} TFLOP"
        )
    return [
        ("robot, agent", f"{plan.robot}, {plan.agent}"),
        ("envs", f"{plan.gpus} GPUs x {plan.envs_per_gpu:,} = {plan.envs:,}"),
        ("samples per iteration", f"{plan.envs:,} envs x {plan.steps} steps = {plan.samples:,}"),
        ("samples of the run", f"{plan.samples:,} x {plan.iterations:,} iterations = {plan.total_samples:,}"),
        (
            "mini-batch",
            f"{plan.samples:,} / {plan.mini_batches} = {plan.mini_batch:,}, of each GPU "
            f"{plan.samples_per_gpu // plan.mini_batches:,}",
        ),
        ("updates per iteration", f"{plan.epochs} epochs x {plan.mini_batches} mini-batches = {plan.updates}"),
        (
            "parameters",
            f"actor {plan.actor_parameters:,} + critic {plan.critic_parameters:,} = {plan.parameters:,}",
        ),
        ("gradient", f"{plan.parameters:,} x {FLOAT} B = {plan.gradient_bytes / mib:.2f} MiB"),
        (
            "all-reduce, sent by each GPU",
            f"x 2 x {plan.gpus - 1}/{plan.gpus} = {plan.traffic_per_update / mib:.2f} MiB an update, "
            f"x {plan.updates} = {plan.traffic_per_iteration / mib:.1f} MiB an iteration",
        ),
        ("arithmetic of networks, each GPU", f"{learning} an iteration"),
        ("rollout storage of each GPU", f"{plan.rollout_bytes / mib:.1f} MiB"),
        (
            "memory of each GPU, at most",
            f"{plan.envs_per_gpu:,} envs x {PUBLIC_MEMORY / PUBLIC_ENVS / 1e6:.2f} MB = "
            f"{plan.envs_per_gpu * PUBLIC_MEMORY / PUBLIC_ENVS / gib:.2f} GiB (public figure of another task, below)",
        ),
        (
            "checkpoint",
            f"{plan.gradient_bytes / mib:.2f} MiB x {1 + ADAM_STATES} = {plan.checkpoint_bytes / mib:.1f} MiB "
            f"+ {plan.envs * 8 / kib:.0f} KiB of fault counters",
        ),
        (
            "an iteration takes",
            f"{max(plan.envs_per_gpu, PUBLIC_ENVS):,} envs x {plan.steps} steps / {rate:,.0f} env-steps/s = "
            f"{seconds:.2f} s (assumption: {source})",
        ),
        (
            "the run takes",
            f"x {plan.iterations:,} = {seconds * plan.iterations / 3600:.1f} h on {plan.gpus} GPUs "
            f"(same assumption), {seconds * plan.iterations / 3600 * plan.gpus:,.0f} GPU hours",
        ),
        (
            "bandwidth that gradients need",
            f"{plan.traffic_per_iteration / seconds / 1e9:.3f} GB/s each way and GPU on average (same assumption)",
        ),
        (
            "evaluation of one policy",
            f"{evaluation.cells} cells x {evaluation.robots:,} robots x {evaluation.steps} steps = "
            f"{evaluation.total_samples:,} env-steps; in {plan.gpus} shares {share:,} each",
        ),
        (
            "a share takes",
            f"{share:,} / {PUBLIC_ACT_RATE:,.0f} env-steps/s = {share / PUBLIC_ACT_RATE:.0f} s and the start "
            "(assumption, below)",
        ),
    ]


def main(argv: Sequence[str]) -> int:
    """Print the plan.

    Args:
        argv: Arguments without the script's name.

    Returns:
        Exit status: 0 done, 2 wrong use.
    """
    parser = Parser(prog="cluster_plan", description="The arithmetic of a training on many GPUs.", allow_abbrev=False)
    add = parser.add_argument
    add("--gpus", type=int, default=64, help="GPUs, one process each (64)")
    add("--robot", default="g1", help=f"{', '.join(COLUMNS)}, or all (g1)")
    add("--agent", default="transformer", help="agent (transformer)")
    add("--envs_per_gpu", type=int, help="envs of each GPU; without it the paper's envs, dealt out evenly")
    add("--rate", type=float, help="env-steps/s of one full GPU that trains; without it a public figure")
    try:
        options = parser.parse_args(argv)
        if options.rate is not None and not options.rate > 0.0:
            raise UmcError(f"--rate is {options.rate}; it has to be above 0")
        robots = list(PAPER["robots"]) if options.robot == "all" else [options.robot.lower()]
        source = f"public figure, {PUBLIC_ENVS:,} envs per L40, below" if options.rate is None else "--rate"
        rate = options.rate or PUBLIC_TRAIN_RATE
        for robot in robots:
            plan = plan_cluster(robot, options.agent, options.gpus, options.envs_per_gpu)
            rows = describe(plan, plan_evaluation(robot), rate, source)
            width = max(len(name) for name, _ in rows)
            print("\n".join(f"{name:<{width}}  {text}" for name, text in rows), end="\n\n")
    except UmcError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"public figures: {PUBLIC_SOURCE}.\nUMC has not run on a GPU yet: no time above has been measured.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
