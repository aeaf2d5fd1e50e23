# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What policies of others read and move: Isaac Lab's own observation manager, on a robot of numbers."""

from types import SimpleNamespace

import pytest
import torch
import yaml
from isaaclab.envs import mdp as lab
from isaaclab.managers import EventTermCfg, ObservationGroupCfg, ObservationManager, ObservationTermCfg, SceneEntityCfg
from isaaclab.utils.noise import UniformNoiseCfg
from isaaclab.utils.string import resolve_matching_names
from tensordict import TensorDict
from torch import nn
from umc.faults.kinds import KINDS
from umc.mdp import joint_mask, joint_sensor
from umc.rl.external import ExternalPolicy, add_group, read_external
from umc.utils.errors import UmcError

NAMES, ROBOTS = ["a", "b", "c"], 2
POSITION = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


class Take(nn.Module):
    """Returns a few of its columns."""

    def __init__(self, first: int, count: int = 3):
        super().__init__()
        self.first, self.count = first, count

    def forward(self, x):
        return x[:, self.first : self.first + self.count]


def group_of(**terms):
    group = ObservationGroupCfg()
    for name, term in terms.items():
        setattr(group, name, term)
    return group


def sensor(func, **params):
    return ObservationTermCfg(func=joint_sensor, params={"func": func, **params})


class Env(SimpleNamespace):
    """What observation terms and policies look at: three joints, of which `dead` ones report 0."""

    def __init__(self, policy=None, critic=None, scale=0.5, offset=0.0, names=NAMES):
        values = lambda rows: SimpleNamespace(torch=torch.tensor(rows))  # noqa: E731
        data = SimpleNamespace(
            joint_pos=values(POSITION),
            joint_vel=values(POSITION),
            default_joint_pos=values([[0.0] * 3] * ROBOTS),
            default_joint_vel=values([[0.0] * 3] * ROBOTS),
        )
        robot = SimpleNamespace(
            data=data,
            joint_names=NAMES,
            num_joints=3,
            num_bodies=2,
            body_names=["trunk", "foot"],
            find_bodies=lambda keys, preserve_order=False, **_: resolve_matching_names(keys, ["trunk", "foot"]),
            find_joints=lambda keys, preserve_order=False, **_: resolve_matching_names(keys, NAMES, preserve_order),
        )
        action = SimpleNamespace(
            cfg=lab.JointPositionActionCfg(asset_name="robot", joint_names=names, scale=scale),
            action_dim=len(names),
            _joint_names=list(names),
            _joint_ids=[NAMES.index(name) for name in names],
            _scale=scale,
            _offset=offset,
        )
        manager = SimpleNamespace(
            active_terms=["joint_pos"],
            get_term=lambda name: action,
            action=torch.zeros(ROBOTS, len(names)),
            total_action_dim=len(names),
        )
        self.dead = torch.zeros(ROBOTS, 3, dtype=torch.bool)
        state = SimpleNamespace(
            kinds=[KINDS["dead"]],
            live_fault=lambda name: SimpleNamespace(
                on=self.dead, severity=torch.zeros(ROBOTS, 3), age=torch.zeros(ROBOTS, 3)
            ),
            joint_mask=self.dead,
        )
        term = SimpleNamespace(func=SimpleNamespace(advance=lambda: state, detect=lambda: state))
        events = SimpleNamespace(active_terms={"interval": ["faults"]}, get_term_cfg=lambda name: term)
        policy = policy or group_of(joint_pos=sensor(lab.joint_pos_rel), last_action=sensor(lab.last_action))
        super().__init__(
            num_envs=ROBOTS,
            device="cpu",
            step_dt=0.02,
            sim=SimpleNamespace(is_playing=lambda: True),
            scene={"robot": robot},
            action_manager=manager,
            event_manager=events,
            action_term=action,
            cfg=SimpleNamespace(
                scene=SimpleNamespace(robot=SimpleNamespace(spawn=None)),
                observations={
                    "policy": policy,
                    "critic": critic,
                    "joint_mask": group_of(m=ObservationTermCfg(joint_mask)),
                },
                events=SimpleNamespace(faults=EventTermCfg(func=len, mode="interval")),
                actions={"joint_pos": action.cfg},
            ),
        )

    def start(self, folder, module, teacher=False, **description):
        """Return the policy of a module with a description."""
        torch.jit.script(module).save(str(folder / "p.pt"))
        (folder / "p.yaml").write_text(yaml.safe_dump({"file": "p.pt", **description}))
        external = read_external(str(folder / "p.yaml"), teacher=teacher)
        add_group(self.cfg, external)
        self.observation_manager = ObservationManager(self.cfg.observations, self)
        return ExternalPolicy(external, self)

    def columns(self, policy):
        """Return what a policy reads now."""
        return policy._columns(TensorDict(self.observation_manager.compute(update_history=True), batch_size=[ROBOTS]))

    def step(self, policy):
        """Return the actions of a policy, which the env has taken."""
        obs = TensorDict(self.observation_manager.compute(update_history=True), batch_size=[ROBOTS])
        self.action_manager.action = policy(obs)
        return self.action_manager.action


def test_last_actions_of_all_steps_are_in_the_units_of_the_policy(tmp_path):
    """Targets are 0.5 a + 0.1 in the task and 0.25 a - 0.3 in the policy: 0.5 * 2 + 0.1 = 0.25 * 5.6 - 0.3."""
    env = Env(offset=0.1)
    policy = env.start(
        tmp_path, Take(0), observations=["last_action"], history=3, action_scale=0.25, action_offset={".*": -0.3}
    )
    env.columns(policy)  # before the first action, which reads 0
    env.action_manager.action = torch.tensor([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    env.columns(policy)
    env.dead[0, 2] = True
    wanted = [0.0, 0.0, 0.0, 5.6, 1.6, -0.4, 5.6, 1.6, 0.0]  # the second was seen before the sensor died
    torch.testing.assert_close(env.columns(policy)[0], torch.tensor(wanted))


@pytest.mark.parametrize("teacher", [True, False])
def test_a_teacher_reads_what_working_sensors_report(teacher, tmp_path):
    noise = UniformNoiseCfg(n_min=0.5, n_max=1.0)
    terms = {"joint_pos": sensor(lab.joint_pos_rel, noise=noise), "last_action": sensor(lab.last_action)}
    env = Env(policy=group_of(**terms))
    policy = env.start(tmp_path, Take(0), teacher, observations=["joint_pos", "last_action"], action_scale=0.25)
    env.columns(policy)
    env.action_manager.action = torch.ones(ROBOTS, 3)
    env.dead[:, 1] = True
    wanted = [1.0, 2.0, 3.0, 2.0, 2.0, 2.0] if teacher else [1.0, 0.0, 3.0, 2.0, 0.0, 2.0]
    torch.testing.assert_close(env.columns(policy)[0], torch.tensor(wanted))


def test_scale_and_clip_of_last_actions_concern_the_units_of_the_policy(tmp_path):
    terms = [{"term": "last_action", "scale": 0.5, "clip": [-3.0, 3.0]}]
    env = Env()
    policy = env.start(tmp_path, Take(0), observations=terms, action_scale=0.25)
    env.action_manager.action = torch.tensor([[1.0, 2.0, -4.0], [1.0, 1.0, 1.0]])  # 2, 4 and -8 of the policy's
    torch.testing.assert_close(env.columns(policy)[0], torch.tensor([1.0, 1.5, -1.5]))


def test_actions_become_the_same_targets_in_the_order_of_the_task_s_action(tmp_path):
    """The policy's order is b, c, a; the action's c, a, b."""
    env = Env(offset=torch.tensor([[0.1, 0.2, 0.3]] * ROBOTS), names=["c", "a", "b"])
    policy = env.start(
        tmp_path,
        Take(0),
        observations=["joint_pos", "last_action"],
        joints=["b", "c", "a"],
        action_scale={"a": 0.1, "[bc]": 0.2},
        action_offset={"[ab]": -0.1, "c": 0.0},
    )
    # it returns the positions 2, 3, 1 of b, c, a; targets c 0.6, a 0.0, b 0.3
    torch.testing.assert_close(env.step(policy)[0], torch.tensor([1.0, -0.4, 0.0]))
    torch.testing.assert_close(env.columns(policy)[0], torch.tensor([2.0, 3.0, 1.0, 2.0, 3.0, 1.0]))


def test_large_actions_are_clipped_in_the_units_of_the_policy(tmp_path):
    env = Env()
    policy = env.start(tmp_path, Take(0), clip_actions=2.5, action_scale=0.25)
    torch.testing.assert_close(env.step(policy), torch.tensor([[0.5, 1.0, 1.25], [1.25, 1.25, 1.25]]))


def described_joints(env, tmp_path, *terms):
    policy = env.start(tmp_path, Take(0), observations=list(terms), joints=["c", "a", "b"])
    return env.columns(policy)[0].tolist()


def test_joint_terms_are_in_the_order_of_the_policy_however_they_select_all_joints(tmp_path):
    turned = SceneEntityCfg("robot", joint_names=["b", "a", "c"], preserve_order=True)
    terms = {
        "plain": ObservationTermCfg(lab.joint_pos),
        "all": sensor(lab.joint_pos_rel, asset_cfg=SceneEntityCfg("robot")),
        "turned": sensor(lab.joint_vel, asset_cfg=turned),
        "mask": ObservationTermCfg(joint_mask),
    }
    env = Env(policy=group_of(**terms))
    env.dead[0, 0] = True
    assert described_joints(env, tmp_path, *terms) == [3.0, 0.0, 2.0] * 3 + [0.0, 1.0, 0.0]
    some = sensor(lab.joint_pos_rel, asset_cfg=SceneEntityCfg("robot", joint_names=["a", "c"]))
    with pytest.raises(UmcError, match="joint_pos_rel reports a, c only; leave joints or the term out"):
        described_joints(Env(policy=group_of(some=some)), tmp_path, "some")


def dof_pos(env):
    return env.scene["robot"].data.joint_pos.torch


def foot_heights(env, asset_cfg):
    return env.scene["robot"].data.joint_pos.torch


def joint_pairs(env):
    return env.scene["robot"].data.joint_pos.torch[:, :2]


def joint_power(env):
    return env.scene["robot"].data.joint_pos.torch[:, :1]


def test_terms_whose_columns_may_be_joints_in_an_unknown_order_are_refused(tmp_path):
    for func in (dof_pos, joint_pairs):
        width = 3 if func is dof_pos else 2
        with pytest.raises(UmcError, match=f"which of {width} {func.__name__} has for which joint; leave joints or"):
            described_joints(Env(policy=group_of(own=ObservationTermCfg(func))), tmp_path, "own")
    feet = SceneEntityCfg("robot", body_names=["foot"])
    free = {
        "feet": ObservationTermCfg(foot_heights, params={"asset_cfg": feet}),
        "power": ObservationTermCfg(joint_power),
    }
    assert described_joints(Env(policy=group_of(**free)), tmp_path, *free) == [1.0, 2.0, 3.0, 1.0]
    own = group_of(own=ObservationTermCfg(dof_pos))
    assert Env(policy=own).start(tmp_path, Take(0), observations=["own"])  # without joints


def test_a_scale_per_column_has_the_order_of_the_policy(tmp_path):
    """Clips come before it, each step of a history has it, and the task's own scale is replaced."""
    terms = {"joint_pos": ObservationTermCfg(lab.joint_pos_rel, scale=7.0), "last_action": sensor(lab.last_action)}
    own = [{"term": "joint_pos", "scale": [10.0, 100.0, 1000.0], "clip": [-2.5, 2.5]}, "last_action"]
    env = Env(policy=group_of(**terms))
    policy = env.start(tmp_path, Take(0), observations=own, joints=["c", "a", "b"], history=2)
    wanted = [25.0, 100.0, 2000.0]  # c is 3, a 1, b 2
    assert env.columns(policy)[0].tolist() == [*wanted, *wanted, *[0.0] * 6]
    own[0]["scale"] = [1.0, 2.0]
    with pytest.raises(UmcError, match="the scale of joint_pos has 2 values, the term has 3 columns"):
        env.start(tmp_path, Take(0), observations=own)


def test_the_joint_mask_that_a_network_reads_by_name_has_the_order_of_the_policy(tmp_path):
    class Mask(nn.Module):
        def forward(self, x, joint_mask):
            return joint_mask

    env = Env()
    env.dead[0, 0] = True
    policy = env.start(tmp_path, Mask(), joints=["c", "a", "b"])
    assert env.step(policy)[0].tolist() == [1.0, 0.0, 0.0]  # in the task's order again
    assert policy._columns.group(env.observation_manager.compute(), "joint_mask")[0].tolist() == [0.0, 1.0, 0.0]


def test_dead_sensors_are_dead_in_what_a_policy_reads_of_the_critic(tmp_path):
    critic = group_of(joint_pos=ObservationTermCfg(lab.joint_pos), last_action=ObservationTermCfg(lab.last_action))
    env = Env(critic=critic)
    terms = ["critic/joint_pos", "critic/last_action"]
    policy = env.start(tmp_path, Take(0), observations=terms, action_scale=0.25)
    env.action_manager.action = torch.ones(ROBOTS, 3)
    env.dead[0, 1] = True
    assert env.columns(policy).tolist() == [[1.0, 0.0, 3.0, 2.0, 0.0, 2.0], [4.0, 5.0, 6.0, 2.0, 2.0, 2.0]]
    effort = ObservationTermCfg(lab.joint_effort)
    with pytest.raises(UmcError, match="critic/effort, for which there are no faults; leave it out"):
        Env(critic=group_of(effort=effort)).start(tmp_path, Take(0), observations=["critic/effort"])


def test_the_history_of_the_task_is_kept_and_each_of_its_steps_is_put_in_order(tmp_path):
    policy_group = group_of(joint_pos=sensor(lab.joint_pos))
    policy_group.history_length = 2
    env = Env(policy=policy_group)
    policy = env.start(tmp_path, Take(0), joints=["c", "a", "b"])
    assert env.columns(policy)[0].tolist() == [3.0, 1.0, 2.0] * 2


def test_the_order_of_the_tasks_history_is_kept(tmp_path):
    group = group_of(joint_pos=sensor(lab.joint_pos), last_action=sensor(lab.last_action))
    group.history_length, group.history_order = 2, "time"
    env = Env(policy=group)
    policy = env.start(tmp_path, Take(0), joints=["a", "b", "c"])
    env.columns(policy)
    env.action_manager.action = torch.full((ROBOTS, 3), 4.0)
    assert env.columns(policy)[0].tolist() == [1, 2, 3, 0, 0, 0, 1, 2, 3, 4, 4, 4]


def test_without_a_history_the_task_has_no_order(tmp_path):
    group = group_of(joint_pos=sensor(lab.joint_pos))
    group.history_order = "time"  # which Isaac Lab ignores without a length
    env = Env(policy=group)
    policy = env.start(tmp_path, Take(0), joints=["c", "a", "b"])
    assert env.columns(policy)[0].tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("order", "wanted"),
    [("term", [1, 2, 3, 1, 2, 3, 0, 0, 0, 4, 4, 4]), ("step", [1, 2, 3, 0, 0, 0, 1, 2, 3, 4, 4, 4])],
)
def test_a_history_is_by_term_or_by_step(tmp_path, order, wanted):
    env = Env()
    terms = ["joint_pos", "last_action"]
    policy = env.start(tmp_path, Take(0), observations=terms, history=2, history_order=order)
    env.columns(policy)
    env.action_manager.action = torch.full((ROBOTS, 3), 4.0)
    assert env.columns(policy)[0].tolist() == wanted


def test_a_network_of_another_width_is_told_what_the_task_has(tmp_path):
    with pytest.raises(UmcError, match=r"not take the 6 columns of the task \(joint_pos 3, last_action 3\)"):
        Env().start(tmp_path, nn.Linear(5, 3))


def test_actions_of_some_joints_only(tmp_path):
    env = Env(names=["c", "a"])
    assert env.step(env.start(tmp_path, Take(0, 2)))[0].tolist() == [1.0, 2.0]
    with pytest.raises(UmcError, match="returns 3 actions, the task takes 2"):
        Env(names=["c", "a"]).start(tmp_path, Take(0))
    with pytest.raises(UmcError, match="joints need actions of all joints; the task's are of c, a"):
        Env(names=["c", "a"]).start(tmp_path, Take(0), observations=["joint_pos"], joints=["c", "a", "b"])
    env = Env()
    env.action_term.cfg = lab.RelativeJointPositionActionCfg(asset_name="robot", joint_names=NAMES)
    with pytest.raises(UmcError, match="need a task with one action term, of joint positions"):
        env.start(tmp_path, Take(0), observations=["joint_pos"], action_scale=0.1)
