# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A mend for walking on height fields with Newton, and when it can go."""

from __future__ import annotations

CONTACTS = 128
"""Contacts that the solver keeps per env: Newton finds one for each triangle, up to 70 under a walking A1."""

ROWS = 640
"""Constraint rows that it keeps per env: four for a contact (pyramidal cone), and the joints'."""


def use_newton_contacts() -> None:
    """Let Newton instead of MuJoCo Warp find contacts, in the simulation that is being set up; PhysX is left alone.

    What: ``use_mujoco_contacts=False`` in the cfg of the MuJoCo Warp solver, and room for more contacts.
    Why: MuJoCo Warp cuts a height field into prisms and keeps 50 collisions of a body with them; at 2.5 cm a calf meets
    more ("height field collision overflow"). The A1 that ships, which walks over PhysX's mesh of the same ground at
    0.64 m/s, does 0.06 m/s, and 14 of 16 robots fall in 10 s; with Newton's own contacts it does 0.56 m/s, and none
    falls, at three times the rate (newton 1.6.1; ``evaluate.py --healthy --num_envs 16 physics=newton_mjwarp
    --checkpoint pretrained:a1_mlp_stage2`` with and without the call in ``tracks.py``).
    When it can go: once the shipped A1 walks on Newton's tracks without it (``tests/evaluation/test_scripts.py``).
    """
    from isaaclab.sim import SimulationContext
    from isaaclab_newton.physics import MJWarpSolverCfg

    context = SimulationContext.instance()
    solver = None if context is None else getattr(context.cfg.physics, "solver_cfg", None)
    if isinstance(solver, MJWarpSolverCfg) and solver.use_mujoco_contacts:
        solver.use_mujoco_contacts = False
        solver.nconmax, solver.njmax = max(solver.nconmax or 0, CONTACTS), max(solver.njmax or 0, ROWS)
