# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A task's robot, scene and managers without a simulator, with the shapes of the real ones, on any device."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import umc.tasks  # noqa: F401 - registers the ids
import warp as wp
from isaaclab.utils.string import resolve_matching_names
from isaaclab_tasks.utils import load_cfg_from_registry, resolve_presets
from umc.robots.names import robot_names

ROBOT_PATH = "/World/envs/env_[0-9]+/Robot"
BASE_DOFS = 6
HISTORY = 3
"""Contact forces that a sensor keeps."""


class Proxy:
    """A buffer as Isaac Lab offers it."""

    def __init__(self, values):
        self.torch = values

    def __len__(self):
        return len(self.torch)


class Bodies:
    """Names of a robot or of a contact sensor, as Isaac Lab looks for them."""

    def __init__(self, joint_names, body_names, device):
        self.device = device
        self.joint_names, self.body_names = list(joint_names), list(body_names)
        self.num_joints, self.num_bodies = len(joint_names), len(body_names)

    def find_joints(self, names, subset=None, preserve_order=False, as_proxy=False):
        ids, found = resolve_matching_names(names, subset or self.joint_names, preserve_order)
        return (Proxy(torch.tensor(ids, device=self.device)) if as_proxy else ids), found

    def find_bodies(self, names, preserve_order=False):
        return resolve_matching_names(names, self.body_names, preserve_order)


def proxies(device, **shapes):
    """Buffers of zeros, by name."""
    return SimpleNamespace(**{name: Proxy(torch.zeros(shape, device=device)) for name, shape in shapes.items()})


class Actuators(dict):
    """Groups of explicit motors, and their parameters as Isaac Lab reads and writes them."""

    def read(self, group, component, name):
        return self[group].setdefault((component, name), torch.zeros_like(self[group]["joints"]))

    def write(self, group, component, name, values):
        self.read(group, component, name).copy_(values)


PARAMETERS = {"read_group_parameter": Actuators.read, "write_group_parameter": Actuators.write}
"""Functions of isaaclab.actuators.newton, which would look for the motors in Newton's model."""


class FakeRobot(Bodies):
    """An articulation on Newton."""

    __backend_name__ = "newton"

    def __init__(self, cfg, joint_names, body_names, envs, device):
        super().__init__(joint_names, body_names, device)
        self.cfg, self.num_instances = cfg.replace(prim_path=ROBOT_PATH), envs
        joints, bodies = (envs, self.num_joints), (envs, self.num_bodies)
        per_joint = ("joint_pos", "joint_vel", "joint_acc", "default_joint_pos", "default_joint_vel")
        per_joint += ("joint_effort_limits", "joint_vel_limits", "joint_pos_limits_lower", "joint_pos_limits_upper")
        per_joint += ("soft_joint_vel_limits", "joint_armature")
        vectors = ("root_lin_vel_w", "root_lin_vel_b", "root_ang_vel_b", "root_ang_vel_w", "root_pos_w")
        self.data = proxies(
            device,
            **dict.fromkeys(per_joint, joints),
            **dict.fromkeys((*vectors, "projected_gravity_b"), (envs, 3)),
            **dict.fromkeys(("joint_pos_limits", "soft_joint_pos_limits"), (*joints, 2)),
            **dict.fromkeys(("body_lin_vel_w", "body_pos_w", "body_com_pos_b"), (*bodies, 3)),
            root_quat_w=(envs, 4),
            body_mass=bodies,
        )
        groups = {name: self.find_joints(motors.joint_names_expr)[0] for name, motors in cfg.actuators.items()}
        motors = {name: {"joints": torch.zeros(envs, len(ids), device=device)} for name, ids in groups.items()}
        self.actuators: Any = Actuators(motors)
        vars(self.actuators).update(vars(proxies(device, applied_effort=joints, computed_effort=joints)))
        self.actuators.target_command = proxies(device, **dict.fromkeys(("position", "velocity", "effort"), joints))


class FakeScene(dict):
    """The robot, its contact sensor and flat ground."""

    def __init__(self, robot, envs, device):
        contacts: Any = Bodies(robot.joint_names, robot.body_names, device)
        forces = (envs, robot.num_bodies, 3)
        contacts.data = proxies(
            device,
            net_normal_forces_w=forces,
            net_normal_forces_w_history=(envs, HISTORY, robot.num_bodies, 3),
            **dict.fromkeys(("current_air_time", "last_air_time", "current_contact_time"), forces[:2]),
        )
        contacts.compute_first_contact = lambda dt: Proxy(contacts.data.current_air_time.torch > dt)
        super().__init__(robot=robot, contact_forces=contacts)
        self.sensors, self.terrain = {"contact_forces": contacts}, SimpleNamespace(cfg=None)
        self.env_origins = torch.zeros(envs, 3, device=device)


class FakeEnv:
    """A task's environment, whose managers are Isaac Lab's own; its physics stands still."""

    def __init__(self, cfg, envs, device):
        self.cfg, self.num_envs, self.device = cfg, envs, device
        self.step_dt, self.max_episode_length = 0.02, 1000
        self.physics_dt = 0.005
        self.max_episode_length_s = 20.0
        manager = SimpleNamespace(set_decimation=lambda decimation: None)
        self.sim = SimpleNamespace(is_playing=lambda: True, device=device, physics_manager=manager)
        self._physics_handles_decimation = True
        names = robot_names(cfg.scene.robot)
        assert names is not None
        robot = FakeRobot(cfg.scene.robot, names.joints, names.bodies, envs, device)
        self.scene = FakeScene(robot, envs, device)
        self.common_step_counter, self.extras = 0, {"log": {}}
        self.episode_length_buf = torch.zeros(envs, dtype=torch.long, device=device)
        commands = torch.zeros(envs, 3, device=device)
        self.command_manager = SimpleNamespace(get_command=lambda name: commands, active_terms=["base_velocity"])
        self.unwrapped = self

    def load_managers(self):
        """Make them in Isaac Lab's order; events of others are left out."""
        from isaaclab import managers as lab

        events = {name: self.cfg.events.__dict__[name] for name in ("reset_faults", "faults")}
        self.event_manager = lab.EventManager(events, self)
        self.action_manager = lab.ActionManager(self.cfg.actions, self)
        self.observation_manager = lab.ObservationManager(self.cfg.observations, self)
        self.termination_manager = lab.TerminationManager(self.cfg.terminations, self)
        self.reward_manager = lab.RewardManager(self.cfg.rewards, self)
        self.curriculum_manager = lab.CurriculumManager(getattr(self.cfg, "curriculum", None), self)

    def step(self, actions):
        """What Isaac Lab does in a step, without physics."""
        self.action_manager.process_action(actions)
        self.action_manager.apply_action()
        self.episode_length_buf += 1
        self.common_step_counter += 1
        ends = self.termination_manager
        ends.compute()
        rewards = self.reward_manager.compute(dt=self.step_dt)
        # not by the manager, which asks a timer on the device whether it is due: the fake one has no answer
        faults = self.event_manager.get_term_cfg("faults")
        faults.func(self, None, **faults.params)
        self.obs_buf = self.observation_manager.compute()
        return self.obs_buf, rewards, ends.terminated, ends.time_outs, self.extras

    def reset(self, env_ids):
        """What Isaac Lab does where episodes end."""
        self.curriculum_manager.compute(env_ids=env_ids)
        self.event_manager.apply(mode="reset", env_ids=env_ids, global_env_step_count=self.common_step_counter)
        for manager in (self.observation_manager, self.action_manager, self.reward_manager, self.curriculum_manager):
            manager.reset(env_ids)
        self.event_manager.reset(env_ids)
        self.termination_manager.reset(env_ids)


def task_cfg(robot, change=lambda cfg: None, *presets):
    """The cfg of a robot's Stage 2 on flat ground."""
    registered = load_cfg_from_registry(f"UMC-{robot}-Stage2", "env_cfg_entry_point")
    cfg: Any = resolve_presets(registered, ["newton_mjwarp", "flat", *presets])
    change(cfg)
    cfg.validate_config()
    for term in vars(cfg.rewards).values():
        term.weight = term.weight or 1.0  # else it is not computed
    return cfg


TYPES = {wp.int32: torch.int32, wp.bool: torch.bool, wp.float32: torch.float32}


class FakeWarp:
    """Warp whose arrays are tensors; a launch compares its arguments with the kernel's, and computes nothing."""

    def __init__(self, device):
        self.device, self.launches = device, []

    def array(self, data, dtype, device):
        return torch.as_tensor(data, dtype=TYPES[{int: wp.int32}[dtype]], device=device)

    def full(self, count, value, dtype, device):
        return torch.full((count,), float(value), device=device)

    def from_torch(self, tensor):
        assert tensor.is_contiguous()
        return tensor

    def to_torch(self, array):
        return array

    def clone(self, array):
        return array.clone()

    def launch(self, kernel, dim, inputs, outputs=(), device=None):
        """Check what Warp checks, and keep the shapes, of which it knows the number of dimensions alone."""
        arguments, shapes = [*inputs, *outputs], {"dim": tuple(dim)}
        assert len(arguments) == len(kernel.adj.args)
        for declared, given in zip(kernel.adj.args, arguments, strict=True):
            if isinstance(given, int):
                assert declared.type is wp.int32, declared.label
                continue
            wanted = declared.type
            assert given.device == torch.device(self.device), declared.label
            parts = getattr(wanted.dtype, "_wp_scalar_type_", None)  # of a vector
            assert given.dtype == TYPES[parts or wanted.dtype], declared.label
            assert given.dim() == wanted.ndim + (parts is not None), declared.label
            shapes[declared.label] = tuple(given.shape)
        self.launches.append((kernel.key, shapes))


class FakeNewton:
    """Newton's model of a robot on a free base, one world per env, and its MuJoCo solver."""

    _graph = None

    def __init__(self, robot):
        envs, joints, device = robot.num_instances, robot.num_joints, robot.device
        dofs = np.arange(envs * (BASE_DOFS + joints)).reshape(envs, -1)
        names = ["floating_base", *robot.joint_names]
        self.model = SimpleNamespace(
            device=device,
            joint_dof_count=dofs.size,
            joint_label=[f"/World/envs/env_{env}/Robot/{name}" for env in range(envs) for name in names],
            joint_world=wp.array(np.repeat(np.arange(envs), len(names)), dtype=int, device="cpu"),
            joint_qd_start=wp.array(dofs[:, [0, *range(BASE_DOFS, dofs.shape[1])]].flatten(), dtype=int, device="cpu"),
        )
        per_dof = ("joint_limit_lower", "joint_limit_upper", "joint_effort_limit", "joint_damping", "joint_friction")
        for name in per_dof:
            setattr(self.model, name, torch.zeros(dofs.size, device=device))
        ranges = {name: torch.zeros(envs, len(names), 2, device=device) for name in ("jnt_range", "jnt_actfrcrange")}
        newton_dof = torch.zeros(envs, len(names), dtype=torch.int32, device=device)
        per_world = (envs, BASE_DOFS + joints)
        passive = {name: torch.zeros(per_world, device=device) for name in ("dof_frictionloss",)}
        solved = {name: torch.zeros(*per_world, n, device=device) for name, n in (("dof_solref", 2), ("dof_solimp", 5))}
        step = SimpleNamespace(timestep=torch.zeros(envs, device=device))
        self._solver = SimpleNamespace(
            mjc_jnt_to_newton_dof=newton_dof,
            mjc_dof_to_newton_dof=torch.zeros(per_world, dtype=torch.int32, device=device),
            mjw_model=SimpleNamespace(**ranges, **passive, **solved, opt=step),
        )
        self.callbacks = []

    def get_model(self):
        return self.model

    def register_state_force_callback(self, callback):
        self.callbacks.append(callback)


def patch_newton(monkeypatch, robot):
    """Let the joints of a robot be written into a fake Newton; return what stands in for Warp."""
    from isaaclab.actuators import newton as drives
    from isaaclab_newton.physics import MJWarpSolverCfg
    from umc.mdp.physics import newton_joints

    for name, function in PARAMETERS.items():
        monkeypatch.setattr(drives, name, function)
    warp = FakeWarp(robot.device)
    monkeypatch.setattr(newton_joints, "wp", warp)
    monkeypatch.setattr(newton_joints, "NewtonManager", FakeNewton(robot))
    cfg = SimpleNamespace(_cfg=SimpleNamespace(solver_cfg=MJWarpSolverCfg()))
    monkeypatch.setattr(newton_joints, "PhysicsManager", cfg)
    return warp
