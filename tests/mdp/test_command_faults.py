# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Commands that get lost or come late: every robot moves as a twin whose commands say what should have arrived."""

from types import SimpleNamespace

import pytest
from umc import mdp
from umc.utils.errors import UmcError

SCENARIOS = ("dropped", "delayed", "dropped+delayed", "normal", "normal", "normal", "normal")
TWINS = {0: 3, 1: 4, 2: 5}
"""Envs with faults, and the healthy envs that are sent what should arrive there."""
HEALTHY = 6
"""Is sent the same commands as env 0."""

ONSETS, DURATION, EPISODE, STEPS = (1, 9), 14, 32, 64
"""First env steps that show the faults, their length, that of an episode, and of the run: two episodes."""


def commands_that_fail(physics: str) -> dict:
    """Robots in the air get position, velocity and effort targets, some of which do not arrive."""
    import torch
    import umc.tasks  # noqa: F401
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.envs import mdp as lab
    from isaaclab.managers import EventTermCfg, RewardTermCfg, TerminationTermCfg
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper
    from isaaclab_tasks.utils import resolve_presets
    from umc import mdp
    from umc.tasks.a1 import A1Stage1EnvCfg
    from umc.terrains import FLAT_GROUND_CFG

    torch.set_num_threads(1)

    def to_the_sky(env, env_ids):
        lab.reset_scene_to_default(env, env_ids)
        robot = env.scene["robot"]
        pose = robot.data.default_root_pose.torch.clone()
        pose[:, :3] += env.scene.env_origins
        pose[:, 2] += 100.0
        robot.write_root_pose_to_sim_index(root_pose=pose)

    def targets(cfg, **kwargs):
        return cfg(asset_name="robot", joint_names=[".*"], **kwargs)

    cfg = resolve_presets(A1Stage1EnvCfg(), [physics, "flat"])
    cfg.scene.terrain = FLAT_GROUND_CFG
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = len(SCENARIOS), "cpu", 3
    cfg.episode_length_s = EPISODE * cfg.sim.dt * cfg.decimation
    cfg.rewards = {"alive": RewardTermCfg(func=lab.is_alive, weight=1.0)}
    cfg.terminations = {"time_out": TerminationTermCfg(func=lab.time_out, time_out=True)}
    cfg.observations.critic = None
    cfg.events.faults.params = {
        "scenario": SCENARIOS,
        "severity": {"dropped": {"choice": [0.5, 1.0]}, "delayed": {"choice": [1, 3, 10]}},
        "onset": ONSETS,
        "duration": DURATION,
        "num_joints": (6, 6),
        "seed": 5,
    }
    faults = cfg.events.faults
    cfg.events = {
        "reset_faults": EventTermCfg(func=mdp.reset_faults, mode="reset"),
        "place": EventTermCfg(func=to_the_sky, mode="reset"),
        "faults": faults,
    }
    cfg.actions.joint_pos = targets(lab.JointPositionActionCfg, use_default_offset=True)
    cfg.actions.velocity = targets(lab.JointVelocityActionCfg, use_default_offset=False)
    cfg.actions.effort = targets(lab.JointEffortActionCfg)
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    cfg.observations.policy.last_action = None  # 36 wide
    env = ManagerBasedRLEnv(cfg)
    wrapped = RslRlVecEnvWrapper(env)
    manager = env.action_manager
    said = {
        "widths": [manager.total_action_dim, wrapped.num_actions, env.action_space.shape[1]],
        "shown": [len(values) for _, values in manager.get_active_iterable_terms(0)],
        "described": [entry["name"] for entry in manager._collect_io_descriptors()],
    }
    env.reset()
    robot, state = env.scene["robot"], mdp.fault_state(env)
    generator = torch.Generator().manual_seed(1)
    scale = torch.tensor([0.2, 1.0, 1.0]).repeat_interleave(12)  # [rad], [rad/s], [N*m]
    kinds = [kind.name for kind in state.kinds]
    sent, arrived, action = {}, {}, torch.zeros(len(SCENARIOS), 36)
    log = {"q": [], "faulty": [], "lost": 0, "asked": 0, "late": set()}
    for number in range(STEPS):
        step = number % EPISODE + 1  # the action of the episode's first step is 1
        action[:] = 0.7 * action[HEALTHY] + scale * torch.randn(36, generator=generator)
        luck = state.uniform("dropped")
        plan = {name: getattr(state.plan, name)[:, 0] for name in ("joints", "onset", "end", "severity")}
        for env_id, twin in TWINS.items():
            for joint in range(12):
                message = action[env_id, joint::12].clone()
                sent[env_id, joint, step] = message
                # the observation of step - 1 is the last that the policy has seen
                onset, end = int(plan["onset"][env_id]), int(plan["end"][env_id])
                if plan["joints"][env_id, joint] and onset <= step - 1 < end:
                    severity = dict(zip(kinds, plan["severity"][env_id, :, joint].tolist(), strict=True))
                    if "delayed" in SCENARIOS[env_id]:
                        late = min(int(severity["delayed"]), step - onset)
                        message = sent[env_id, joint, max(step - late, 1)]
                        log["late"].add(late)
                    if "dropped" in SCENARIOS[env_id]:
                        log["asked"] += 1
                        if luck[env_id, joint] < severity["dropped"]:
                            log["lost"] += 1
                            message = arrived[env_id, joint]
                arrived[env_id, joint] = message
                action[twin, joint::12] = message
        env.step(action)
        log["q"].append(robot.data.joint_pos.torch.clone())
        log["faulty"].append(state.joints.clone())
        if step == 1:
            said.setdefault("onsets", []).append(state.onset[list(TWINS)].tolist())
    q, faulty = torch.stack(log["q"]), torch.stack(log["faulty"])
    said["twins apart"] = [float((q[:, one] - q[:, twin]).abs().max()) for one, twin in TWINS.items()]
    apart = torch.stack([(q[:, one] - q[:, HEALTHY]).abs() for one in TWINS], dim=1)
    said["effect"] = (apart * faulty[:, list(TWINS)]).amax((0, 2)).tolist()
    said["first effect"] = [
        [
            1 + int((apart[episode * EPISODE : (episode + 1) * EPISODE, one].amax(1) > 1e-4).int().argmax())
            for one in TWINS
        ]
        for episode in range(2)
    ]
    said["finite"] = bool(torch.isfinite(q).all())
    said["lost"], said["late"] = log["lost"] / log["asked"], sorted(log["late"])
    return said


@pytest.fixture(scope="module", params=("newton_mjwarp", "ovphysx"))
def said(request, run_engine):
    return run_engine(commands_that_fail, physics=request.param)


@pytest.mark.engine
def test_robots_follow_the_commands_that_arrive(said):
    assert said["finite"]
    assert 0.4 < said["lost"] < 0.95
    assert {1, 2, 3, 10} <= set(said["late"])
    assert max(said["twins apart"]) < 1e-4
    assert min(said["effect"]) > 0.02


@pytest.mark.engine
def test_the_first_command_that_fails_answers_the_first_observation_that_shows_the_fault(said):
    assert {onset for episode in said["onsets"] for onset in episode} == set(ONSETS)
    assert said["first effect"] == [[onset + 1 for onset in episode] for episode in said["onsets"]]
    # policies and descriptions do not see the action term of the faults
    assert said["widths"] == [36, 36, 36]
    assert said["shown"] == [12, 12, 12, 0]
    assert said["described"] == ["joint_position_action", "joint_velocity_action", "joint_effort_action"]


class FakeEnv(SimpleNamespace):
    """As much of an environment as the fault terms look at before the simulation starts."""

    def __init__(self, actions):
        asset = SimpleNamespace(joint_names=["a", "b", "c", "d"])
        cfg = SimpleNamespace(actions=SimpleNamespace(**actions), curriculum=None)
        super().__init__(cfg=cfg, scene={"robot": asset}, num_envs=2, device="cpu", max_episode_length=1000)


def start(actions, **params):
    cfg = SimpleNamespace(params={"num_joints": (1, 2), **params})
    return mdp.joint_faults(cfg, FakeEnv(actions))


def joint_targets():
    from isaaclab.envs import mdp as lab

    return lab.JointPositionActionCfg(asset_name="robot", joint_names=[".*"])


def test_command_faults_need_their_action_term_as_the_last_of_their_robot():
    faults, joint_pos = mdp.CommandFaultsCfg(), joint_targets()
    for actions in ({"joint_pos": joint_pos}, {"command_faults": faults, "joint_pos": joint_pos}):
        message = r"commands of 'robot' can fail \(dropped\).*add as the last one: command_faults"
        with pytest.raises(UmcError, match=message):
            start(actions, scenario="dropped")
        assert [kind.name for kind in start(actions, scenario="dead").state.kinds] == ["dead"]
    other = joint_pos.replace(asset_name="gripper")
    actions = {"joint_pos": joint_pos, "command_faults": faults, "gripper": other, "none": None}
    assert [kind.name for kind in start(actions, scenario="dropped").state.kinds] == ["dropped"]
