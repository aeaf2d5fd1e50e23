# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Measure whether the faults act: ``python -m my_extension.watch`` breaks every joint of some Solo12."""

from __future__ import annotations

import argparse
import os
import sys

KINDS = ("ratchet", "coarse", "effort")
"""Faults of the robots, one each; one more robot is healthy."""

STEP = 0.2
"""Severity of ``coarse`` [rad]."""

TORQUE = 0.75
"""Severity of ``effort`` [N*m]."""

ONSET = 10
"""Env step at which the faults set in."""

FIRST_JOINT = 12
"""Column of the first joint's position in the observation."""


def watch(physics: str = "ovphysx", steps: int = 60) -> dict[str, list[float]]:
    """Measure under random actions what three broken robots and a healthy one do: (broken, healthy) by quantity."""
    import torch
    import umc.utils.patches
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import resolve_presets
    from umc import mdp

    import my_extension  # noqa: F401  (registers the kinds)
    from my_extension.task import Solo12Stage2EnvCfg

    umc.utils.patches.apply()
    torch.manual_seed(0)
    cfg = resolve_presets(Solo12Stage2EnvCfg(), [physics])
    cfg.scene.num_envs = len(KINDS) + 1
    cfg.terminations.trunk_contact = None  # fallen robots stay on the ground
    cfg.events.faults.params |= {
        "scenario": [*KINDS, 8],  # assigned to the envs in turn; 8 is healthy
        "severity": {"coarse": STEP, "effort": TORQUE},
        "num_joints": (12, 12),
        "onset": ONSET,
    }
    cfg.events.faults.params.pop("ratios")
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    robot, state = env.scene["robot"], mdp.fault_state(env)

    positions, readings, torques = [], [], []
    for _ in range(steps):
        observed = env.step(torch.randn(cfg.scene.num_envs, 12, device=env.device))[0]
        positions.append(robot.data.joint_pos.torch.clone())
        readings.append(observed["policy"][:, FIRST_JOINT : FIRST_JOINT + 12].clone())
        torques.append(robot.actuators.applied_effort.torch.clone())
    for number, kind in enumerate(KINDS):
        live = state.live_fault(kind)
        assert bool(live.on[number].all()), f"not every joint has {kind}"

    at_onset, healthy = ONSET - 1, len(KINDS)  # entry i is the state after step i + 1
    later = torch.stack(positions)[ONSET:] - positions[at_onset]
    steps_read = torch.stack(readings)[ONSET:] / STEP
    torque = torch.stack(torques)[ONSET:].abs()
    off_step = (steps_read - steps_read.round()).abs() * STEP
    return {
        "turned back at most [rad]": [-float(later[:, env].min()) for env in (0, healthy)],
        "reading off a step at most [rad]": [float(off_step[:, env].max()) for env in (1, healthy)],
        "torque at most [N*m]": [float(torque[:, env].max()) for env in (2, healthy)],
    }


def main() -> int:
    """Print the measurements; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--physics", default="ovphysx", choices=("newton_mjwarp", "ovphysx"), help="engine")
    args = parser.parse_args()
    measured = watch(args.physics)
    print(f"{'':34} {'broken':>10} {'healthy':>10}")
    for quantity, (broken, healthy) in measured.items():
        print(f"{quantity:34} {broken:10.4f} {healthy:10.4f}")
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the teardown of an engine may hang
