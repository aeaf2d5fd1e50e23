# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Commands that get lost or come late: every robot moves as a twin that is sent what should have arrived."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fault_env import UnstartedEnv, events_with
from isaaclab.actuators import (
    DelayedPDActuatorCfg,
    IdealPDActuatorCfg,
    ImplicitActuatorCfg,
    RemotizedPDActuatorCfg,
)
from umc import mdp
from umc.faults import FaultSchedule, FaultState, find_kind, inject_fault
from umc.mdp.actions import JointTargets, check_command_faults
from umc.utils.errors import UmcError

SCENARIOS = ("dropped", "delayed", "dropped+delayed", "normal", "normal", "normal", "normal")
TWINS = {0: 3, 1: 4, 2: 5}
"""Envs with faults, and the healthy envs that are sent what should arrive there."""
HEALTHY = 6
"""Is sent the same commands as env 0."""

ONSETS, DURATION, EPISODE, STEPS = (1, 9), 14, 32, 64
"""First env steps that show the faults, their length, that of an episode, and of the run: two episodes."""


def commands_that_fail(physics: str, out: str) -> None:
    """Robots in the air get position, velocity and effort targets, some of which do not arrive."""
    import fault_env
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.envs import mdp as lab
    from isaaclab.managers import EventTermCfg
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper

    faults = {
        "scenario": SCENARIOS,
        "severity": {"dropped": {"choice": [0.5, 1.0]}, "delayed": {"choice": [1, 3, 10]}},
        "onset": ONSETS,
        "duration": DURATION,
        "num_joints": (6, 6),
        "seed": 5,
    }
    cfg = fault_env.a1_cfg(physics, len(SCENARIOS), EPISODE, faults)
    cfg.events = {
        "reset_faults": cfg.events.reset_faults,
        "place": EventTermCfg(func=fault_env.place, mode="reset"),
        "faults": cfg.events.faults,
    }
    joints = {"asset_name": "robot", "joint_names": [".*"]}
    cfg.actions.joint_pos = lab.JointPositionActionCfg(use_default_offset=True, **joints)
    cfg.actions.velocity = lab.JointVelocityActionCfg(use_default_offset=False, **joints)
    cfg.actions.effort = lab.JointEffortActionCfg(**joints)
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    cfg.observations.policy.last_action = None  # 36 wide
    env = ManagerBasedRLEnv(cfg)
    wrapped, manager, log = RslRlVecEnvWrapper(env), env.action_manager, fault_env.Log()
    log.once["widths"] = [manager.total_action_dim, wrapped.num_actions, env.action_space.shape[1]]
    log.once["shown"] = [len(values) for _, values in manager.get_active_iterable_terms(0)]
    log.once["described"] = [entry["name"] for entry in manager._collect_io_descriptors()]
    env.reset()
    state = mdp.fault_state(env)
    generator = torch.Generator().manual_seed(1)
    scale = torch.tensor([0.2, 1.0, 1.0]).repeat_interleave(12)  # [rad], [rad/s], [N*m]
    kinds = [kind.name for kind in state.kinds]
    sent, arrived, action = {}, {}, torch.zeros(len(SCENARIOS), 36)
    log.once |= {"lost": [], "late": []}

    def arriving(env_id: int, joint: int, step: int) -> torch.Tensor:
        """The message of a joint that arrives in a step, after the documentation of the kinds."""
        message = sent[env_id, joint, step]
        onset, end = int(state.plan.onset[env_id, 0]), int(state.plan.end[env_id, 0])
        # the observation of step - 1 is the last that the policy has seen
        if not state.plan.joints[env_id, 0, joint] or not onset <= step - 1 < end:
            return message
        severity = dict(zip(kinds, state.plan.severity[env_id, 0, :, joint].tolist(), strict=True))
        if "delayed" in SCENARIOS[env_id]:
            log.once["late"].append(min(int(severity["delayed"]), step - onset))
            message = sent[env_id, joint, max(step - log.once["late"][-1], 1)]
        if "dropped" in SCENARIOS[env_id]:
            log.once["lost"].append(bool(luck[env_id, joint] < severity["dropped"]))
            message = arrived[env_id, joint] if log.once["lost"][-1] else message
        return message

    for number in range(STEPS):
        step = number % EPISODE + 1  # the action of the episode's first step is 1
        action[:] = 0.7 * action[HEALTHY] + scale * torch.randn(36, generator=generator)
        luck = state.uniform("dropped")
        for env_id, twin in TWINS.items():
            for joint in range(12):
                sent[env_id, joint, step] = action[env_id, joint::12].clone()
                arrived[env_id, joint] = arriving(env_id, joint, step)
                action[twin, joint::12] = arrived[env_id, joint]
        env.step(action)
        log.add(q=env.scene["robot"].data.joint_pos.torch, faulty=state.joints, onset=state.onset)
    log.save(out)


@pytest.fixture(scope="module", params=("newton_mjwarp", "ovphysx"))
def log(request, run_engine, tmp_path_factory):
    out = tmp_path_factory.mktemp("commands") / "log.pt"
    run_engine(commands_that_fail, physics=request.param, out=str(out))
    log = SimpleNamespace(**torch.load(out, weights_only=True))
    log.effect = torch.stack([(log.q[:, env] - log.q[:, HEALTHY]).abs() for env in TWINS], dim=1)
    return log


@pytest.mark.engine
def test_robots_follow_the_commands_that_arrive(log):
    assert log.q.isfinite().all()
    assert 0.4 < sum(log.lost) / len(log.lost) < 0.95
    assert {1, 2, 3, 10} <= set(log.late)
    for env, twin in TWINS.items():
        assert (log.q[:, env] - log.q[:, twin]).abs().max() < 1e-4
    assert (log.effect * log.faulty[:, list(TWINS)]).amax((0, 2)).min() > 0.02


@pytest.mark.engine
def test_the_first_command_that_fails_answers_the_first_observation_that_shows_the_fault(log):
    onsets = log.onset[::EPISODE][:, list(TWINS)]
    assert set(onsets.flatten().tolist()) == set(ONSETS)
    moved = (log.effect.amax(2) > 1e-4).unflatten(0, (-1, EPISODE))
    assert torch.equal(1 + moved.int().argmax(1), onsets + 1)
    # policies and descriptions do not see the action term of the faults
    assert log.widths == [36, 36, 36]
    assert log.shown == [12, 12, 12, 0]
    assert log.described == ["joint_position_action", "joint_velocity_action", "joint_effort_action"]


def start(actions, as_dict=False, **params):
    """The fault term of a task with these actions, before the simulation starts."""
    cfg = SimpleNamespace(actions=actions if as_dict else SimpleNamespace(**actions), curriculum=None)
    cfg.events = {"reset_faults": mdp.FaultEventsCfg().reset_faults}
    return mdp.joint_faults(SimpleNamespace(params={"num_joints": (1, 2), **params}), UnstartedEnv(cfg))


def test_command_faults_need_their_action_term_as_the_last_of_their_robot():
    faults = mdp.CommandFaultsCfg()
    joint_pos = mdp.JointTargetsCfg(asset_name="robot", joint_names=[".*"])
    for actions in ({"joint_pos": joint_pos}, {"command_faults": faults, "joint_pos": joint_pos}):
        message = r"commands of 'robot' can fail \(dropped\).*add as the last one: command_faults"
        with pytest.raises(UmcError, match=message):
            start(actions, scenario="dropped")
        assert [kind.name for kind in start(actions, scenario="dead").state.kinds] == ["dead"]
    other = joint_pos.replace(asset_name="gripper")
    actions = {"joint_pos": joint_pos, "command_faults": faults, "gripper": other, "none": None}
    for as_dict in (False, True):
        assert [kind.name for kind in start(actions, as_dict, scenario="dropped").state.kinds] == ["dropped"]


def test_imu_faults_need_an_observation_that_shows_them():
    import umc.tasks  # noqa: F401
    from isaaclab_tasks.utils import load_cfg_from_registry

    cfg: Any = load_cfg_from_registry("UMC-A1-Stage2", "env_cfg_entry_point")
    cfg.actions = SimpleNamespace()
    params = SimpleNamespace(params={"num_joints": (1, 2), "scenario": "imu_dead"})
    with pytest.raises(UmcError, match=r"the IMU can fail \(imu_dead\).*call umc.mdp.add_imu_sensors"):
        mdp.joint_faults(params, UnstartedEnv(cfg))
    critic = repr(cfg.observations.critic)
    mdp.add_imu_sensors(cfg)
    assert [kind.name for kind in mdp.joint_faults(params, UnstartedEnv(cfg)).state.kinds] == ["imu_dead"]
    assert cfg.observations.policy.base_ang_vel.func is mdp.imu_sensor
    assert repr(cfg.observations.critic) == critic


def test_tasks_have_the_joint_targets_that_are_quick_on_physx():
    import umc.tasks  # noqa: F401
    from isaaclab_tasks.utils import load_cfg_from_registry

    for robot in ("A1", "Go2", "H1", "G1", "Solo8"):
        cfg: Any = load_cfg_from_registry(f"UMC-{robot}-Stage2", "env_cfg_entry_point")
        assert cfg.actions.joint_pos.class_type is JointTargets


class Joints:
    """Two joints at 0.1 rad that turn at 3 rad/s, and the action term of their command faults."""

    def __init__(self, scenario="normal", **severity):
        schedule = FaultSchedule(
            ["a", "b"], scenario=scenario, severity=severity, onset=1, duration=2, num_joints=(2, 2)
        )
        self.state = FaultState(schedule, 1)
        self.state.reset(torch.tensor([0]))
        self.buffers = {name: torch.zeros(1, 2) for name in ("position", "velocity", "effort")}
        motion = {"joint_pos": torch.full((1, 2), 0.1), "joint_vel": torch.full((1, 2), 3.0)}
        command, data = (
            SimpleNamespace(**{name: SimpleNamespace(torch=value) for name, value in columns.items()})
            for columns in (self.buffers, motion)
        )
        self.decimations: list[int] = []
        manager = SimpleNamespace(set_decimation=self.decimations.append)
        self.env: Any = SimpleNamespace(
            scene={"robot": SimpleNamespace(actuators=SimpleNamespace(target_command=command), data=data)},
            sim=SimpleNamespace(physics_manager=manager),
            event_manager=events_with(SimpleNamespace(state=self.state)),
            num_envs=1,
            device="cpu",
            _physics_handles_decimation=True,
        )
        self.term: Any = mdp.CommandFaultsCfg().class_type(mdp.CommandFaultsCfg(), self.env)

    def step(self, number, target, between=lambda: None):
        """Position and velocity targets of the first joint in two physics steps of an env step."""
        self.state.advance(torch.tensor([number]), torch.full((1, 2), 0.1))
        self.term.process_actions(torch.zeros(1, 0))
        seen = []
        for _ in range(2):
            self.buffers["position"].fill_(target)  # as other terms do, which leave velocities alone
            self.term.apply_actions()
            seen.append((round(self.buffers["position"][0, 0].item(), 4), self.buffers["velocity"][0, 0].item()))
            between()
        return seen


def test_targets_that_backlash_changed_are_restored_once_it_ends():
    joints = Joints("backlash", backlash=0.4)
    free, sent = (0.1, 3.0), (0.2, 0.0)
    seen = [joints.step(step, 0.2) for step in range(4)]
    assert seen == [[sent, sent], [free, free], [free, free], [sent, sent]]
    assert joints.decimations == [1]
    assert not joints.env._physics_handles_decimation


def test_targets_that_others_write_between_steps_stay():
    joints = Joints("backlash", backlash=0.4)
    for step in range(2):
        joints.step(step, 0.2)
    joints.buffers["velocity"].fill_(7.0)  # by a reset, say
    assert joints.step(3, 0.2) == [(0.2, 7.0)] * 2


def test_a_lost_command_leaves_the_target_that_arrived_not_the_one_that_acted():
    joints = Joints("backlash+dropped", backlash=0.1, dropped=1.0)
    assert joints.step(0, 0.3) == [(0.3, 0.0)] * 2
    # 0.3 arrived last, of which half the play is lost
    assert joints.step(1, 0.9) == [(0.25, 0.0)] * 2
    assert joints.step(2, 0.9) == [(0.25, 0.0)] * 2
    assert joints.step(3, 0.9) == [(0.9, 0.0)] * 2


def test_a_manual_backlash_in_the_middle_of_an_env_step_acts_in_the_next():
    joints = Joints()

    def inject():
        inject_fault(joints.state, 0, 0, find_kind("backlash"), 0.4)

    assert joints.step(1, 0.2, inject) == [(0.2, 0.0)] * 2
    assert joints.step(2, 0.2) == [(0.1, 3.0)] * 2


@pytest.mark.parametrize(
    ("motor", "why"),
    [
        (ImplicitActuatorCfg, "are the engine's"),
        (DelayedPDActuatorCfg, "delay their commands"),
        (RemotizedPDActuatorCfg, "delay their commands"),
    ],
)
def test_backlash_of_motors_that_do_not_read_the_targets_of_each_step_is_refused(motor, why):
    cfg = SimpleNamespace(actions=SimpleNamespace(command_faults=mdp.CommandFaultsCfg()))
    gains = {"joint_names_expr": [".*"], "stiffness": 1.0, "damping": 1.0}
    robot = SimpleNamespace(cfg=SimpleNamespace(actuators={"legs": motor(**gains)}))
    check_command_faults(cfg, [find_kind("dropped")], robot, "robot")
    with pytest.raises(UmcError, match=f"'backlash' needs motors .* without a delay, and some of 'robot' {why};"):
        check_command_faults(cfg, [find_kind("backlash")], robot, "robot")
    robot.cfg.actuators["legs"] = IdealPDActuatorCfg(**gains)
    check_command_faults(cfg, [find_kind("backlash")], robot, "robot")
