# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Rewards, terminations and privileged observations on small examples; no simulator."""

import math
from types import SimpleNamespace

import pytest
import torch
from umc import mdp

NAN = float("nan")


def proxy(values):
    return SimpleNamespace(torch=torch.tensor(values))


def make_env(command=None, forces=None, actuators=None, **data):
    """An environment of a robot with this data, command, and contact forces of its feet [N]."""
    fields = {name: proxy(values) for name, values in data.items()}
    robot = SimpleNamespace(data=SimpleNamespace(**fields), actuators=actuators)
    scene = type("Scene", (dict,), {})(robot=robot)
    commands = SimpleNamespace(get_command=lambda name: torch.tensor([command]))
    env = SimpleNamespace(scene=scene, command_manager=commands, device="cpu", step_dt=0.02)
    if forces is not None:
        force = torch.tensor(forces).unsqueeze(-1) * torch.tensor([0.0, 0.0, 1.0])
        data = SimpleNamespace(net_normal_forces_w=SimpleNamespace(torch=force))
        scene.sensors, env.num_envs = {"contact_forces": SimpleNamespace(data=data)}, len(forces)
    return env


def feet(count):
    return SimpleNamespace(name="contact_forces", body_ids=list(range(count)))


def test_yaw_drift_counts_slow_turns_and_no_swinging():
    env = make_env(command=[0.5, 0.0, 0.1], root_ang_vel_b=[[0.0, 0.0, 0.0]] * 3)
    env.num_envs = 3
    term = mdp.yaw_drift(SimpleNamespace(params={}), env)
    yaw_rate = env.scene["robot"].data.root_ang_vel_b.torch[:, 2]
    for step in range(300):
        swing = 0.6 * math.sin(2.0 * math.pi * 3.0 * step * env.step_dt)  # [rad/s], three strides a second
        yaw_rate[:] = torch.tensor([0.1, 0.1 + swing, 0.3])
        drift = term(env, "base_velocity", time_constant=0.5)
    assert drift[0] < 1e-6
    assert drift[1] < 0.08
    assert drift[2] == pytest.approx(0.2, rel=0.01)
    term.reset(torch.tensor([2]))
    yaw_rate[:] = 0.1
    assert term(env, "base_velocity", time_constant=0.5)[2] == 0.0
    with torch.inference_mode():
        term(env, "base_velocity", time_constant=0.5)
    term.reset()  # outside it


@pytest.mark.parametrize(
    ("command", "velocity", "share"),
    [
        ([0.5, 0.0, 0.0], [0.0, 0.0, 0.0], 0.0),
        ([0.5, 0.0, 0.0], [0.1, 0.3, -0.2], 0.2),  # what it drifts aside is no progress
        ([0.5, 0.0, 0.0], [0.8, 0.0, 0.0], 1.0),  # faster is not better
        ([0.5, 0.0, 0.0], [-2.0, 0.0, 0.0], -1.0),
        ([0.0, -0.4, 0.0], [0.5, -0.2, 0.0], 0.5),
        ([0.0, 0.0, 1.0], [0.5, 0.5, 0.0], 0.0),  # the command is to stand
    ],
)
def test_progress_is_the_share_of_the_command(command, velocity, share):
    env = make_env(command=command, root_lin_vel_b=[velocity])
    assert mdp.commanded_progress(env, "base_velocity").tolist() == pytest.approx([share])


@pytest.mark.parametrize(
    ("forces", "reward"),
    [
        ([50.0, 0.0, 0.0, 50.0], 1.0),  # FL and RR stand
        ([0.0, 50.0, 50.0, 0.0], 1.0),  # FR and RL stand
        ([50.0, 50.0, 50.0, 50.0], 0.0),  # stands still
        ([0.0, 0.0, 0.0, 0.0], 0.0),  # jumps
        ([50.0, 0.0, 50.0, 0.0], 0.0),  # paces: one side stands
        ([50.0, 50.0, 0.0, 0.0], 0.0),  # bounds: the front stands
        ([50.0, 0.0, 0.5, 50.0], 1.0),  # a touch below the threshold is no stance
    ],
)
def test_trot_is_exactly_one_diagonal(forces, reward):
    assert mdp.diagonal_support(make_env(forces=[forces]), feet(4)).item() == reward


def test_gait_terms_can_skip_robots_with_a_joint_fault(monkeypatch):
    # a dead sensor alone is no joint fault
    state = SimpleNamespace(has_joint_fault=torch.tensor([[False, False], [False, True]]))
    monkeypatch.setattr("umc.mdp.rewards.fault_state", lambda env: state)
    env = make_env(forces=[[50.0, 0.0, 0.0, 50.0]] * 2)
    assert mdp.diagonal_support(env, feet(4)).tolist() == [1.0, 1.0]
    assert mdp.diagonal_support(env, feet(4), healthy_only=True).tolist() == [1.0, 0.0]
    duty = mdp.uneven_duty(SimpleNamespace(params={"sensor_cfg": feet(4)}), env)
    assert sum(duty(env, feet(4), 0.5)[1] for _ in range(50)) > 1.0
    sound, lame = duty(env, feet(4), 0.5, healthy_only=True).tolist()
    assert sound > 0.5
    assert lame == 0.0


def duty_after(*phases, time_constant=0.5):
    """The term after feet stood as `phases` say, each for 1 s, in two envs."""
    env = make_env(forces=torch.zeros(2, 4).tolist())
    term = mdp.uneven_duty(SimpleNamespace(params={"sensor_cfg": feet(4)}), env)
    for stance in phases:
        env.scene.sensors["contact_forces"].data.net_normal_forces_w.torch[:] = 50.0 * torch.tensor(stance)[:, None]
        for _ in range(50):
            value = term(env, feet(4), time_constant)
    return term, env, value[0].item()


def test_standing_on_one_diagonal_is_uneven_and_standing_on_four_feet_is_not():
    assert duty_after([1.0, 1.0, 1.0, 1.0])[2] == pytest.approx(0.0)
    assert duty_after([1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0])[2] > 0.7
    assert duty_after([1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], time_constant=50.0)[2] < 0.01
    term, env, before = duty_after([1.0, 0.0, 0.0, 1.0])
    assert before > 0.5
    term.reset(torch.tensor([0]))
    fresh, kept = term(env, feet(4), 0.5).tolist()
    assert fresh == pytest.approx(0.0, abs=1e-6)
    assert kept > 0.5


def test_gait_clock_counts_steps_of_the_episode():
    env = SimpleNamespace(episode_length_buf=torch.tensor([0, 10, 42]), step_dt=0.02, num_envs=3, device="cpu")
    assert mdp.gait_phase(env, period=0.8).tolist() == pytest.approx([0.0, 0.25, 0.05], abs=1e-5)
    assert mdp.gait_phase(env, period=0.8, offset=0.5).tolist() == pytest.approx([0.5, 0.75, 0.55], abs=1e-5)
    quarter = mdp.phase_clock(env, period=0.8)[1]
    assert quarter.tolist() == pytest.approx([1.0, 0.0], abs=1e-6)


def test_feet_agree_with_the_clock_one_by_one():
    # phase 0.25: the left foot must stand, the right one (0.75) must swing
    env = make_env(forces=[[50.0, 0.0], [50.0, 50.0], [0.0, 50.0]])
    env.episode_length_buf = torch.full((3,), 10)
    agree = mdp.contact_follows_phase(env, period=0.8, offsets=(0.0, 0.5), stance=0.55, sensor_cfg=feet(2))
    assert agree.tolist() == [2.0, 1.0, 0.0]


def test_only_swinging_feet_are_held_to_a_height_and_only_standing_ones_must_not_slip():
    env = make_env(
        forces=[[0.0, 50.0]],
        body_pos_w=[[[0.0, 0.0, 1.1], [0.0, 0.0, 1.0]]],
        body_lin_vel_w=[[[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]]],
    )
    env.scene.env_origins = torch.tensor([[0.0, 0.0, 1.0]])
    asset_cfg = SimpleNamespace(name="robot", body_ids=[0, 1])
    error = mdp.swing_height_error(env, target=0.08, sensor_cfg=feet(2), asset_cfg=asset_cfg)
    assert error.item() == pytest.approx((0.1 - 0.08) ** 2, rel=1e-4)
    assert mdp.foot_slip(env, feet(2), asset_cfg).item() == pytest.approx(4.0)


def test_totals_that_are_negative_or_not_finite_become_zero():
    terms = torch.tensor([[1.0, -3.0, 9.0], [2.0, -0.5, 9.0]])  # the last column is the term itself, from the last step
    env = SimpleNamespace(reward_manager=SimpleNamespace(_step_reward=terms))
    assert mdp.only_positive(env).tolist() == [2.0, 0.0]
    terms[:] = torch.tensor([[NAN, -3.0, 0.0], [math.inf, 1.0, 0.0]])
    terms[:, 2] = mdp.only_positive(env)
    assert terms.sum(1).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("broken", ["joint_pos", "joint_vel", "root_pos_w", "root_quat_w", "root_lin_vel_w"])
@pytest.mark.parametrize("value", [NAN, math.inf])
def test_any_coordinate_that_is_not_finite_ends_the_episode(broken, value):
    healthy = {
        "joint_pos": [[0.0, 0.1], [0.0, 0.1]],
        "joint_vel": [[0.0, 0.1], [0.0, 0.1]],
        "root_pos_w": [[0.0, 0.0, 0.3]] * 2,
        "root_quat_w": [[0.0, 0.0, 0.0, 1.0]] * 2,
        "root_lin_vel_w": [[0.0, 0.0, 0.0]] * 2,
    }
    env = make_env(**healthy)
    getattr(env.scene["robot"].data, broken).torch[1, -1] = value
    assert mdp.non_finite_state(env).tolist() == [False, True]


@pytest.mark.parametrize(
    ("roll", "pitch", "max_pitch", "ends"),
    [
        (0.0, 0.0, 1.6, False),
        (0.79, 0.0, 1.6, False),
        (0.81, 0.0, 1.6, True),
        (-0.81, 0.0, 1.6, True),
        (0.0, 1.4, 1.6, False),
        (0.0, -1.0, 1.6, False),
        (0.0, 1.1, 1.0, True),
    ],
)
def test_roll_and_pitch_have_limits_of_their_own(roll, pitch, max_pitch, ends):
    from isaaclab.utils.math import quat_apply_inverse, quat_from_euler_xyz

    quat = quat_from_euler_xyz(torch.tensor([roll]), torch.tensor([pitch]), torch.tensor([2.0]))
    env = make_env(projected_gravity_b=quat_apply_inverse(quat, torch.tensor([[0.0, 0.0, -1.0]])).tolist())
    assert mdp.roll_pitch_beyond(env, max_roll=0.8, max_pitch=max_pitch).item() is ends


def test_rewards_of_one_step():
    velocities = {"root_lin_vel_w": [[0.5, 0.3, 9.0], [0.2, 0.4, 0.0]], "root_lin_vel_b": [[9.0, 9.0, 9.0]] * 2}
    env = make_env(command=[0.5, 0.0, 7.0], joint_pos=[[0.5, 9.0, -2.0]], joint_vel=[[2.0, 3.0]], **velocities)
    assert mdp.planar_velocity_error(env, "base_velocity").tolist() == pytest.approx([0.3, 0.5])
    assert mdp.joint_pos_l2(env, SimpleNamespace(name="robot", joint_ids=[0, 2])).tolist() == [4.25]
    env.scene["robot"].actuators = SimpleNamespace(
        applied_effort=proxy([[10.0, -4.0]]), computed_effort=proxy([[30.0, 0.0], [-26.0, 3.0], [25.0, -25.0]])
    )
    assert mdp.mechanical_power(env).tolist() == [32.0]
    assert mdp.effort_beyond(env, limit=25.0).tolist() == [1.0, 1.0, 0.0]  # commanded torque, before clipping


def test_privileged_physics_is_read_at_start_up_and_after_a_reset_of_all_envs(monkeypatch):
    gains = torch.tensor([[50.0, 40.0], [50.0, 60.0]])
    monkeypatch.setattr("isaaclab.actuators.newton.read_group_parameter", lambda *_: gains)
    mass, com = [[1.0, 6.0], [1.0, 10.0]], [[[9.0] * 3, [0.1, 0.2, 0.3]], [[9.0] * 3, [0.0, 0.0, -0.1]]]
    env = make_env(body_mass=mass, body_com_pos_b=com)
    env.num_envs = 2
    term, trunk = mdp.randomized_physics(SimpleNamespace(params={}), env), SimpleNamespace(name="robot", body_ids=[1])
    expected = torch.tensor([[0.75, 0.1, 0.2, 0.3, 1.0, 0.8], [1.25, 0.0, 0.0, -0.1, 1.0, 1.2]])
    torch.testing.assert_close(term(env, trunk, "legs"), expected)
    env.scene["robot"].data.body_mass.torch[:, 1] = 8.0
    term.reset(torch.tensor([0]))  # one robot that falls changes nothing
    torch.testing.assert_close(term(env, trunk, "legs"), expected)
    term.reset(slice(None))
    assert term(env, trunk, "legs")[:, 0].tolist() == [1.0, 1.0]
