# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Joint limits in Newton, whose MuJoCo solver has no speed limit and soft position limits.

In every solver substep, between the making of constraints and the solve, each limited joint gets two constraint rows:
its speed at the end of the substep must not exceed its limit, nor take it out of its window. The solver fulfils these
inequalities together with contacts and all other joints, so that an impact cannot break them. Such a row acts between
two links: momentum is conserved, and a joint within its bounds feels no force. The damping that a fault adds is a pair
of such rows, too, since MuJoCo damps after the solve.

Limits are written into the solver's arrays of the envs in a mask: Isaac Lab's own writers make Newton rebuild its
constants in all worlds at the next step.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast, override

import numpy as np
import torch
import warp as wp
from isaaclab.physics import PhysicsManager
from isaaclab_newton.physics import MJWarpSolverCfg, NewtonManager
from newton.solvers import SolverMuJoCo

from umc.mdp.physics.engine import EngineJoints
from umc.mdp.physics.newton_kernels import Rows, bound_speeds, write_effort_limits, write_passive, write_position_limits
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.utils.warp import ProxyArray


class NewtonJoints(EngineJoints):
    """The joints of one robot in Newton; raises UmcError for a solver other than MuJoCo-Warp, or a recorded graph."""

    def __init__(self, asset: Articulation) -> None:
        super().__init__(asset)
        if not isinstance(getattr(PhysicsManager._cfg, "solver_cfg", None), MJWarpSolverCfg):
            raise UmcError("faults on Newton need the MuJoCo-Warp solver; set NewtonCfg.solver_cfg to MJWarpSolverCfg")
        if NewtonManager._graph is not None:  # later launches are not part of the recorded steps
            raise UmcError(
                "the CUDA graph of this task was recorded without limits of joints; make umc.mdp.FaultInjector "
                "before the first step, or set NewtonCfg.use_cuda_graph to False"
            )
        self._model = model = NewtonManager.get_model()
        dofs, slots = _joint_addresses(asset, model)
        self._dofs = torch.as_tensor(dofs, device=asset.device)
        self._slots = wp.array(slots, dtype=int, device=model.device)
        self._speed, self._lower, self._upper, self._damping = (
            wp.full(model.joint_dof_count, value, dtype=float, device=model.device)
            for value in (np.inf, -np.inf, np.inf, 0.0)
        )
        self._dry: tuple[Any, Any, Any] | None = None
        """The solver's model, and how hard its dry friction holds healthy joints."""
        self._hooked: Any = None
        self._bounding: tuple[Any, Any, wp.Launch] | None = None
        NewtonManager.register_state_force_callback(self._hook)

    @override
    def write_position_limits(
        self, lower: torch.Tensor, upper: torch.Tensor, soft: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor
    ) -> None:
        data, model, solver = cast(Any, self.asset.data), self._model, _solver()
        outputs = [model.joint_limit_lower, model.joint_limit_upper, solver.mjw_model.jnt_range]
        outputs += [self._lower, self._upper]
        self._launch(write_position_limits, solver.mjc_jnt_to_newton_dof, [envs, faulty, lower, upper], [], outputs)
        _show(data.joint_pos_limits_lower, lower, envs)
        _show(data.joint_pos_limits_upper, upper, envs)
        _show(data.joint_pos_limits, torch.stack((lower, upper), dim=-1), envs)
        _show(data.soft_joint_pos_limits, soft, envs)

    @override
    def write_velocity_limits(self, speed: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        bounds = wp.to_torch(self._speed)
        limited = torch.where(faulty, speed, torch.inf)
        bounds[self._dofs] = torch.where(envs.unsqueeze(1), limited, bounds[self._dofs])

    @override
    def read_passive(self) -> torch.Tensor:
        model = cast(Any, self._model)
        own, added, friction = (
            wp.to_torch(values)[self._dofs] for values in (model.joint_damping, self._damping, model.joint_friction)
        )
        return torch.stack((own + added, friction, friction), dim=-1)

    @override
    def write_passive(self, values: torch.Tensor, faulty: torch.Tensor, envs: torch.Tensor) -> None:
        solver = _solver()
        model = solver.mjw_model
        if self._dry is None or self._dry[0] is not model:
            self._dry = model, wp.clone(model.dof_solref), wp.clone(model.dof_solimp)
        more = [model.opt.timestep, *self._dry[1:], self._model.joint_damping]
        outputs = [self._damping, self._model.joint_friction]
        outputs += [model.dof_frictionloss, model.dof_solref, model.dof_solimp]
        self._launch(write_passive, solver.mjc_dof_to_newton_dof, [envs, faulty, values], more, outputs)

    @override
    def write_effort_limits(self, effort: torch.Tensor, envs: torch.Tensor) -> None:
        solver = _solver()
        outputs = [self._model.joint_effort_limit, solver.mjw_model.jnt_actfrcrange]
        self._launch(write_effort_limits, solver.mjc_jnt_to_newton_dof, [envs, effort], [], outputs)
        _show(self.asset.data.joint_effort_limits, effort, envs)

    def _launch(
        self, kernel: Any, newton_dof: Any, tensors: list[torch.Tensor], more: list[Any], outputs: list[Any]
    ) -> None:
        """Run a kernel that writes the envs in a mask, one thread for every joint of the solver."""
        given = [wp.from_torch(tensor.contiguous()) for tensor in tensors]
        inputs = [self.asset.num_joints, self._slots, newton_dof, *given, *more]
        wp.launch(kernel, dim=newton_dof.shape, inputs=inputs, outputs=outputs, device=self._model.device)

    def _hook(self, state: Any) -> None:
        """Hook in between constraints and solve, at the first substep: the solver is built after the event manager."""
        model = _solver().mjw_model
        if model is self._hooked:
            return
        self._hooked, others = model, model.callback.control

        def bound(model: Any, data: Any) -> None:
            if others is not None:
                others(model, data)
            self._bound_speeds(model, data)

        model.callback.control = bound

    def _bound_speeds(self, model: Any, data: Any) -> None:
        # recorded once: with few envs, packing the arguments takes longer than the kernel, and they stay the same
        if self._bounding is None or self._bounding[0] is not data:
            rows = _rows(data)
            launch = wp.launch(
                bound_speeds,
                dim=data.nworld,
                inputs=[
                    model.nv,
                    model.is_sparse,
                    model.opt.timestep,
                    _solver().mjc_dof_to_newton_dof,
                    model.dof_jntid,
                    model.jnt_qposadr,
                    model.dof_invweight0,
                    data.qpos,
                    data.qvel,
                    self._speed,
                    self._lower,
                    self._upper,
                    self._damping,
                    rows,
                ],
                device=self._model.device,
                record_cmd=True,
            )
            self._bounding = data, rows, cast(wp.Launch, launch)
        self._bounding[2].launch()


def _solver() -> SolverMuJoCo:
    return cast(SolverMuJoCo, NewtonManager._solver)  # Isaac Lab 3.0 has no public accessor


def _rows(data: Any) -> Any:
    rows, efc = Rows(), data.efc
    rows.capacity, rows.entries, rows.count = data.njmax, efc.J.shape[2], data.nefc
    rows.type, rows.id, rows.pos, rows.margin = efc.type, efc.id, efc.pos, efc.margin
    rows.stiffness, rows.velocity, rows.acceleration, rows.friction = efc.D, efc.vel, efc.aref, efc.frictionloss
    rows.jacobian, rows.length, rows.start, rows.column = efc.J, efc.J_rownnz, efc.J_rowadr, efc.J_colind
    rows.block_start, rows.block_rows, rows.blocks = efc.jtdaj_adr, efc.jtdaj_nrow, efc.jtdaj_nblock
    return rows


def _show(buffer: ProxyArray, value: torch.Tensor, envs: torch.Tensor) -> None:
    """Show in a buffer of the asset's data the engine's values of the envs in a mask."""
    shown = buffer.torch
    shown.copy_(torch.where(envs.view(-1, *(1,) * (value.dim() - 1)), value, shown))


def _joint_addresses(asset: Articulation, model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where Newton keeps the robot's joints.

    Returns:
        Index of every joint in velocity-shaped arrays, shape (E, J), and, for every such index, env * J + joint, or -1
        for what is not a joint of this robot, shape (number of degrees of freedom,).
    """
    dofs = np.full((asset.num_instances, asset.num_joints), -1)
    slots = np.full(model.joint_dof_count, -1, dtype=np.int32)
    column = {name: index for index, name in enumerate(asset.joint_names)}
    root = re.compile(asset.cfg.prim_path + "/.*")
    world, dof_start = model.joint_world.numpy(), model.joint_qd_start.numpy()
    for index, label in enumerate(model.joint_label):
        joint = column.get(label.rsplit("/", 1)[-1])
        if joint is not None and root.fullmatch(label):
            dofs[world[index], joint] = dof_start[index]
            slots[dof_start[index]] = world[index] * asset.num_joints + joint
    if (dofs < 0).any():
        names = [name for name, joint in column.items() if bool((dofs[:, joint] < 0).any())]
        raise UmcError(
            f"Newton holds {', '.join(names)} of {asset.cfg.prim_path} as other than one degree of freedom; choose "
            "physics=ovphysx"
        )
    return dofs, slots
