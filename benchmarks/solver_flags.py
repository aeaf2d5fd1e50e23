# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Flags that replace a task's solver settings, for benchmarks that compare some."""

from __future__ import annotations

import argparse
from typing import Any

from umc.utils.errors import UmcError

NEWTON = {
    "njmax": "rows of the solver per env",
    "nconmax": "contacts per env",
    "substeps": "substeps per physics step",
}
PHYSX = {
    "position_iterations": "solver iterations for contacts and joint limits",
    "velocity_iterations": "solver iterations for speed limits",
}
"""Settings of one engine alone, and what they are."""


def add_solver_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags to a command line."""
    for engine, settings in (("Newton", NEWTON), ("PhysX", PHYSX)):
        for name, meaning in settings.items():
            parser.add_argument(f"--{name}", type=int, help=f"{engine}: {meaning}, in place of the task's")
    parser.add_argument("--armature", type=float, help="rotor inertia of all joints, in place of the robot's [kg*m^2]")


def solver_flags(args: argparse.Namespace) -> list[str]:
    """Return the flags that were given, for another process."""
    names = (*NEWTON, *PHYSX, "armature")
    return [f"--{name}={getattr(args, name)}" for name in names if getattr(args, name) is not None]


def set_solver(cfg: Any, args: argparse.Namespace) -> None:
    """Change the solver of a task whose engine is chosen; UmcError for a setting that it does not have."""
    is_newton = hasattr(cfg.sim.physics, "num_substeps")
    foreign = [name for name in (PHYSX if is_newton else NEWTON) if getattr(args, name) is not None]
    if foreign:
        raise UmcError(f"--{foreign[0]} is no setting of this engine; choose the other one, or leave it out")
    if is_newton:
        physics, solver = cfg.sim.physics, cfg.sim.physics.solver_cfg
        solver.njmax = _at_least(1, args, "njmax", solver.njmax)
        solver.nconmax = _at_least(1, args, "nconmax", solver.nconmax)
        physics.num_substeps = _at_least(1, args, "substeps", physics.num_substeps)
    for part in cfg.scene.robot.spawn.articulation_props:
        if hasattr(part, "solver_position_iteration_count"):
            counts = part.solver_position_iteration_count, part.solver_velocity_iteration_count
            part.solver_position_iteration_count = _at_least(1, args, "position_iterations", counts[0])
            part.solver_velocity_iteration_count = _at_least(0, args, "velocity_iterations", counts[1])
    for motors in cfg.scene.robot.actuators.values():
        motors.armature = _at_least(0, args, "armature", motors.armature)


def _at_least(least: int, args: argparse.Namespace, name: str, own: Any) -> Any:
    value = getattr(args, name)
    if value is not None and value < least:
        raise UmcError(f"--{name} must be at least {least}")
    return own if value is None else value
