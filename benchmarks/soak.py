# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Apply all kinds of faults to thousands of robots at once, and check that nothing but the robots is broken.

Short episodes of a robot under violent random actions and all kinds of faults; every physics step is measured. Checked
are: no NaN reaches an observation; after a reset an env's state is finite and its limits are the healthy ones to the
bit; Newton's solver has room for all rows and contacts; and the ledger agrees with physics from switch to switch:
torques and positions measured, limits as the engine has them. Ends with status 1 if anything is violated. Usage:

    ./isaaclab.sh -p benchmarks/soak.py --robot A1 --physics newton_mjwarp [--episodes 4096] [--num_envs 64]
    ./isaaclab.sh -p benchmarks/soak.py --robot A1 --terrain perlin --njmax 300
    ./isaaclab.sh -p benchmarks/soak.py --robot G1 --physics ovphysx --steps 5000
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from common import ROBOTS, positive, run_and_exit, stage2_cfg
from soak_checks import GRACE, OVERSHOOT, SPEEDING, Findings, Segment, compare
from solver_flags import add_solver_flags, set_solver
from umc.faults import read_ledger, training_faults
from umc.mdp.actions import step_physics_one_by_one
from umc.utils.console import ignore_known_warnings, progress_bar, quiet
from umc.utils.io import write_json

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

TARGET_SIZE = 1.5
"""Standard deviation of the joint targets around the default pose [rad]: many lie far outside of a joint's range."""

EPISODE = 40
"""Longest episode [env steps]."""

SCENARIOS = (
    *("normal", "rom", "effort", "velocity", "locked", "power_loss", "braking", "derating", "friction"),
    *("dead", "frozen", "bias", "drift", "noise", "dropped", "delayed"),
    *("burst_loss", "growing_delay", "backlash", "imu_bias", "imu_drift", "imu_frozen", "imu_dead"),
    *("dead+rom+effort+velocity", "locked+power_loss", "rom+locked+delayed", "frozen+noise+dropped", "drift+velocity"),
    *("braking+rom", "friction+velocity", "derating+effort"),
)
"""Drawn with equal odds: every kind alone, and some together."""

SEVERITY = {
    "rom": {"uniform": [0.05, 0.6]},
    "braking": {"log_uniform": [0.1, 50.0]},
    "derating": {"fraction": {"uniform": [0.05, 0.3]}},
    "friction": {"log_uniform": [0.1, 20.0]},
    "bias": {"uniform": [-0.3, 0.3]},
    "drift": {"uniform": [-0.5, 0.5]},
    "noise": {"log_uniform": [0.01, 0.3]},
    "dropped": {"uniform": [0.1, 0.9]},
    "delayed": {"choice": [1, 3, 10]},
    "burst_loss": {"uniform": [1, 20]},
    "growing_delay": {"uniform": [0.05, 1.0]},
    "backlash": {"uniform": [0.05, 0.5]},
    "imu_bias": {"log_uniform": [0.01, 2.0]},
    "imu_drift": {"log_uniform": [0.01, 1.0]},
}
EFFORT_SPREAD, VELOCITY_SPREAD = (0.1, 4.0), (1.0 / 6.0, 5.0)
"""Least and greatest torque and speed that is left, in shares of what the paper's training leaves the robot [-]."""

TIMES = {"num_faults": (1, 2), "onset_range": (1, 25), "duration": (1, 40), "period": (6, 40), "duty": 0.6}
"""Up to two faults an episode; some stay, some end, some come and go [env steps]."""

SHOWN = 20
"""Violations that are printed."""

HARMLESS = {"ITERATIONS", "LS_ITERATIONS"}
"""Flags of a solver that stopped at its limit of iterations: no memory was short, and it prints nothing."""


class Meter:
    """Measure an environment in every physics step, and make a segment at every switch of faults."""

    def __init__(self, env: ManagerBasedRLEnv) -> None:
        from umc import mdp

        self.env, self.robot, self.state = env, env.scene["robot"], mdp.fault_state(env)
        self.segments: list[Segment] = []
        shape = (env.num_envs, self.robot.num_joints)
        self._begun = torch.zeros(env.num_envs, 2, dtype=torch.long)  # episode and step of the running segments
        self._samples = torch.zeros(env.num_envs, dtype=torch.long)
        self._sums = {name: torch.zeros(shape) for name in ("torque", "lowest", "highest", "fastest", "too_fast")}
        self._was_on = self.state.faults_on.clone()
        self._cap = torch.full(shape, math.inf)
        self._engine, self._start = engine_limits(env), self.robot.data.joint_pos.torch.clone()
        self.solver = SolverRoom(env.num_envs) if self.robot.__backend_name__ == "newton" else None
        update = env.scene.update

        def update_and_measure(dt: float) -> None:
            update(dt)
            self._measure()

        env.scene.update = update_and_measure
        self._clear(torch.ones(env.num_envs, dtype=torch.bool))

    def _measure(self) -> None:
        data, sums = self.robot.data, self._sums
        self._samples += 1
        if self.solver is not None:
            self.solver.measure()
        speed = torch.where(self._samples[:, None] > GRACE, data.joint_vel.torch.abs(), 0.0)
        sums["torque"] = torch.maximum(sums["torque"], self.robot.actuators.applied_effort.torch.abs())
        sums["lowest"] = torch.minimum(sums["lowest"], data.joint_pos.torch)
        sums["highest"] = torch.maximum(sums["highest"], data.joint_pos.torch)
        sums["fastest"] = torch.maximum(sums["fastest"], speed)
        sums["too_fast"] += speed > SPEEDING * self._cap

    def after_step(self) -> torch.Tensor:
        """Close the segments that an env step has ended, after each of them; return the envs that were reset."""
        fresh = self.state.episode != self._begun[:, 0]
        switched = fresh | (self.state.faults_on != self._was_on).any(1)
        if switched.any():
            self._close(switched)
            self._engine, position = engine_limits(self.env), self.robot.data.joint_pos.torch
            self._start = torch.where(switched[:, None], position, self._start)
            speed = self.state.live_fault("velocity")
            self._cap = torch.where(speed.on, speed.severity, math.inf)
            self._begun[switched] = torch.stack((self.state.episode, self.state.step), 1)[switched]
            self._clear(switched)
            self._was_on = self.state.faults_on.clone()
        return fresh

    def finish(self) -> None:
        """Close all segments."""
        self._close(torch.ones(self.env.num_envs, dtype=torch.bool))

    def _close(self, envs: torch.Tensor) -> None:
        for env in (envs & (self._samples > 0)).nonzero().flatten().tolist():
            episode, step = self._begun[env].tolist()
            sums = {name: value[env].clone() for name, value in self._sums.items()}
            engine = {name: value[env] for name, value in self._engine.items()}
            rows = {**sums, "start": self._start[env], "engine": engine}
            self.segments.append(Segment(env, episode, step, int(self._samples[env]), **rows))

    def _clear(self, envs: torch.Tensor) -> None:
        self._samples[envs] = 0
        for name, start in (("torque", 0.0), ("lowest", math.inf), ("highest", -math.inf), ("fastest", 0.0)):
            self._sums[name][envs] = start
        self._sums["too_fast"][envs] = 0.0


class SolverRoom:
    """How many rows and contacts Newton's solver needs, and whether there ever was too little room for them.

    The solver raises a flag wherever it prints an overflow message; the flag cannot get lost in a pipe.
    """

    def __init__(self, num_envs: int) -> None:
        from isaaclab_newton.physics import NewtonManager

        manager: Any = NewtonManager
        self._data, self._num_envs = manager._solver.mjw_data, num_envs  # no public way to the solver
        self._rows = self._contacts = self._flags = 0

    def measure(self) -> None:
        """Measure after a physics step."""
        data = self._data
        self._rows = max(self._rows, int(data.nefc.numpy().max()))
        self._contacts = max(self._contacts, int(data.nacon.numpy().max()))
        self._flags |= int(np.bitwise_or.reduce(data.overflow.numpy()))

    def report(self, findings: Findings) -> None:
        """Add what was measured to the findings."""
        from mujoco_warp._src.types import OverflowType  # not public

        findings.worst["rows in the fullest env"] = self._rows
        findings.worst["rows that fit (njmax)"] = int(self._data.njmax)
        findings.worst["contacts per env, all envs together"] = self._contacts / self._num_envs
        findings.worst["contacts that fit (nconmax)"] = int(self._data.naconmax) / self._num_envs
        flags = {str(flag.name) for flag in OverflowType if flag & self._flags}
        findings.violations.extend(f"all envs: Newton's solver overflowed: {flag}" for flag in sorted(flags - HARMLESS))


def engine_limits(env: ManagerBasedRLEnv) -> dict[str, torch.Tensor]:
    """Return copies of what faults may change and resets must restore, by name. Shapes begin with (E, J)."""
    import warp as wp
    from isaaclab.actuators.newton import read_group_parameter
    from umc.mdp.fault_terms import fault_term

    robot = env.scene["robot"]
    data = robot.data
    values = {
        "lower": data.joint_pos_limits.torch[..., 0],
        "upper": data.joint_pos_limits.torch[..., 1],
        "soft limits": data.soft_joint_pos_limits.torch,
        "default pose": data.default_joint_pos.torch,
        "effort": read_group_parameter(robot.actuators, "legs", "clamping", "max_effort"),
        "stiffness": read_group_parameter(robot.actuators, "legs", "controller", "kp"),
        "damping": read_group_parameter(robot.actuators, "legs", "controller", "kd"),
        "velocity": data.joint_vel_limits.torch,
    }
    writer: Any = fault_term(env).writer
    if robot.__backend_name__ == "newton":  # speed and position rows of UMC's own
        engine = writer._velocity.engine
        for name in ("_speed", "_lower", "_upper", "_damping"):
            values[f"row{name}"] = wp.to_torch(getattr(engine, name))[engine._dofs]
        values["friction"] = wp.to_torch(engine._model.joint_friction)[engine._dofs]
    else:
        values["passive"] = writer._passive.engine.read_passive()
    return {name: value.clone() for name, value in values.items()}


def severities(robot: str) -> dict[str, Any]:
    """Return the severities by kind."""

    def spread(value: Any, low: float, high: float) -> Any:
        if isinstance(value, dict):
            return {joints: spread(one, low, high) for joints, one in value.items()}
        return {"log_uniform": [low * value, high * value]}

    trained = training_faults(robot.lower())["severity"]
    spreads = {"effort": EFFORT_SPREAD, "velocity": VELOCITY_SPREAD}
    return {**SEVERITY, **{kind: spread(trained[kind], *shares) for kind, shares in spreads.items()}}


def make_env(args: argparse.Namespace, ledger: Path) -> ManagerBasedRLEnv:
    """Make a robot's Stage 2 environment with all kinds of faults."""
    from isaaclab.envs import ManagerBasedRLEnv
    from umc import mdp

    cfg = stage2_cfg(args.robot, args.physics, args.num_envs, terrain=args.terrain)
    cfg.seed = args.seed
    set_solver(cfg, args)
    cfg.episode_length_s = EPISODE * cfg.sim.dt * cfg.decimation
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    mdp.add_imu_sensors(cfg)
    cfg.events.faults.params = {
        "ratios": dict.fromkeys(SCENARIOS, 1.0),
        "severity": severities(args.robot),
        "num_joints": (1, 6),
        "seed": args.seed,
        "ledger": str(ledger),
        **TIMES,
    }
    env = ManagerBasedRLEnv(cfg)
    step_physics_one_by_one(env)  # so that each can be measured
    return env


def soak(env: ManagerBasedRLEnv, args: argparse.Namespace, findings: Findings) -> list[Segment]:
    """Step robots with random actions until enough episodes have ended or steps are done; return what was measured."""
    generator = torch.Generator().manual_seed(args.seed)
    total = args.steps or args.episodes
    observations, _ = env.reset()
    healthy, meter = engine_limits(env), Meter(env)
    counts, data, joints = findings.counts, env.scene["robot"].data, env.scene["robot"].num_joints
    action: Any = env.action_manager.get_term("joint_pos").cfg
    size = TARGET_SIZE / action.scale
    with progress_bar(total, "soaking", "step" if args.steps else "episode") as bar:
        while bar.n < total:
            actions = size * torch.randn(env.num_envs, joints, generator=generator)
            observations, reward, terminated, timed_out, _ = env.step(actions)
            counts["env steps"] += env.num_envs
            for name, group in {**observations, "reward": reward}.items():
                bad = ~torch.isfinite(group).flatten(1 if group.dim() > 1 else 0)
                for number in (bad.any(1) if bad.dim() > 1 else bad).nonzero().flatten().tolist():
                    findings.violations.append(f"env {number}, step {counts['env steps']}: {name} is not finite")
            fresh = meter.after_step()
            ended = int(fresh.sum())
            counts["episodes"] += ended
            counts["falls"] += int(terminated.sum())
            counts["time-outs"] += int(timed_out.sum())
            counts["broken physics"] += int(env.termination_manager.get_term("non_finite_state").sum())
            if ended:
                check_reset(env, fresh, healthy, findings)
                finite = torch.isfinite(data.joint_pos.torch).all(1) & torch.isfinite(data.root_pose_w.torch).all(1)
                for number in (fresh & ~finite).nonzero().flatten().tolist():
                    findings.violations.append(f"env {number}: its state is not finite after a reset")
            bar.update(1 if args.steps else ended)
    meter.finish()
    if meter.solver is not None:
        meter.solver.report(findings)
    return meter.segments


def check_reset(
    env: ManagerBasedRLEnv, fresh: torch.Tensor, healthy: dict[str, torch.Tensor], findings: Findings
) -> None:
    """Compare the limits of envs that have been reset with the healthy ones."""
    for name, value in engine_limits(env).items():
        kept = (value == healthy[name]).flatten(1).all(1)
        for number in (fresh & ~kept).nonzero().flatten().tolist():
            findings.violations.append(f"env {number}: {name} is not restored to the bit after a reset")


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Soak test of the fault layer on a real engine")
    add = parser.add_argument
    add("--robot", choices=ROBOTS, default=ROBOTS[0])
    add("--physics", choices=list(OVERSHOOT), default="newton_mjwarp")
    add("--terrain", choices=("flat", "perlin"), default="flat", help="ground; A1 alone has perlin tracks")
    add("--episodes", type=positive, default=4096, help="env episodes")
    add("--steps", type=positive, help="env steps of each robot, in place of --episodes")
    add("--num_envs", type=positive, default=64)
    add("--seed", type=int, default=0)
    add("--ledger", type=Path, help="where to keep the ledger")
    add("--json", type=Path, help="where to write the findings")
    add_solver_flags(parser)
    args = parser.parse_args(argv)
    if args.terrain != "flat" and args.robot != "A1":
        parser.error(f"--terrain {args.terrain}: {args.robot} has no tracks; A1 has")
    return args


def main(argv: list[str]) -> int:
    """Run the soak; return 1 if anything was violated, else 0."""
    args = parse(argv)
    torch.set_num_threads(1)
    path = args.ledger or Path(tempfile.mkdtemp()) / "ledger.jsonl"
    findings = Findings(OVERSHOOT[args.physics])
    print(f"{args.physics}: starting {args.num_envs} {args.robot}; the ledger is {path}", flush=True)
    ignore_known_warnings()
    with quiet():
        env = make_env(args, path)
    segments = soak(env, args, findings)
    ledger = read_ledger(path)
    compare(ledger, segments, findings)
    findings.worst["ledger bytes per env episode"] = path.stat().st_size / len(ledger.episodes)
    for group in (findings.counts, findings.worst):
        for name, value in sorted(group.items()):
            print(f"{name:45} {value:12.6g}")
    for line in findings.violations[:SHOWN]:
        print(f"violation: {line}")
    print(
        f"{args.robot}, {args.physics}: {len(findings.violations)} violations in {findings.counts['episodes']} episodes"
    )
    if args.json is not None:
        write_json(args.json, {"robot": args.robot, "physics": args.physics, **vars(findings)})
    return int(bool(findings.violations))


if __name__ == "__main__":
    run_and_exit(main)
