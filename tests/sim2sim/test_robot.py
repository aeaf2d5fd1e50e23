# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A robot in plain MuJoCo: its motors, what faults leave of them, what it measures, and when it has fallen."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from exported_a1 import A1
from umc.sim2sim.conditions import Conditions, Start, draw_start
from umc.sim2sim.robot import Motors, Robot, RobotType, SolverCfg, load_robot, robot_mjcf
from umc.utils.errors import UmcError

LEGS = ("FL", "FR", "RL", "RR")
NAMES = tuple(f"{leg}_{part}_joint" for leg in LEGS for part in ("hip", "thigh", "calf"))
POSE = np.array([0.1, 0.8, -1.5, -0.1, 0.8, -1.5, 0.1, 1.0, -1.5, -0.1, 1.0, -1.5])
CONDITIONS = Conditions.from_description(A1)
ONES = np.ones(12)
MOTORS = Motors(NAMES, POSE, 50.0 * ONES, ONES, 25.0 * ONES, 21.0 * ONES, physics_dt=0.005, decimation=4)


def a1(motors=MOTORS, conditions=CONDITIONS, **solver):
    return RobotType(robot_mjcf("a1"), motors, conditions, SolverCfg(**solver))


@pytest.fixture(scope="module")
def kind():
    return a1()


def hanging(kind):
    """A robot in free fall, at rest: nothing touches it and nothing weighs."""
    robot = Robot(kind)
    robot.model.opt.gravity[:] = 0.0
    robot.data.qpos[2] = 5.0
    return robot


@pytest.mark.parametrize(("pattern", "count"), [("FL_foot", 0), (".*_calf", 4)])
def test_a_foot_that_is_not_one_body_is_refused(pattern, count):
    conditions = replace(CONDITIONS, feet=["FL_calf", pattern])
    with pytest.raises(UmcError, match=f"feet names .*, which matches {count} bodies of a1.xml instead of one; export"):
        a1(conditions=conditions)


def swing(robot, steps=60, amplitude=0.8, hertz=2.0):
    """Positions, speeds and torques while targets swing. Shapes are (steps, 12)."""
    rows = []
    for step in range(steps):
        robot.step(POSE + amplitude * np.sin(2 * np.pi * hertz * step * 0.02))
        rows.append((robot.joint_position, robot.joint_velocity, robot.torque))
    return (np.array(column) for column in zip(*rows, strict=True))


def test_a1_stands_at_its_height_with_its_weight_on_its_feet(kind):
    robot = Robot(kind)
    for _ in range(150):
        robot.step(POSE)
    assert robot.data.qpos[2] == pytest.approx(0.28, abs=0.005)  # as on Newton and PhysX (umc.robots.a1)
    assert robot.stance.all()
    assert not robot.fallen
    assert robot._forces().sum() == pytest.approx(13.741 * 9.81, rel=0.01)
    np.testing.assert_allclose(robot.gravity, (0.0, 0.0, -1.0), atol=0.03)


def test_a_shorter_contact_time_is_a_harder_contact():
    deep = []
    for seconds in (None, 0.005):
        robot = Robot(a1(substeps=4, contact_time=seconds))
        for _ in range(100):
            robot.step(POSE)
        deep.append(-robot.data.contact.dist.mean())
    assert 0.0 < deep[1] < deep[0] / 4  # a spring's depth goes with the square of its time constant
    with pytest.raises(UmcError, match=r"contacts of 0\.004 s are too short for steps of 0\.005 s"):
        a1(contact_time=0.004)


def test_motors_follow_what_the_joints_make_of_the_targets_in_every_physics_step(kind):
    robot, given = hanging(kind), []

    def transmit(target, q, v):
        given.append((q.copy(), v.copy()))
        return target + 0.1, 0.5 * v

    robot.step(POSE, transmit)
    assert len(given) == MOTORS.decimation
    (q, v), before = given[-1], given[-2]
    assert np.abs(v).max() > 0.1
    assert (q != before[0]).any()
    np.testing.assert_allclose(robot.torque, np.clip(50.0 * (POSE + 0.1 - q) - 0.5 * v, -25.0, 25.0), atol=1e-12)


def test_torques_are_those_of_the_description_and_reach_the_joints(kind):
    robot = hanging(kind)
    joint, target = NAMES.index("FR_calf_joint"), POSE.copy()
    target[joint] += 0.1
    robot.data.qvel[kind.qvel[joint]] = 0.5
    robot.kind = a1(replace(MOTORS, decimation=1))
    before = robot.joint_velocity
    robot.step(target)
    assert robot.torque[joint] == pytest.approx(50.0 * 0.1 - 1.0 * 0.5)
    assert np.abs(np.delete(robot.torque, joint)).max() < 1e-9
    # the calf's inertia about the knee, rotor included, determines its speed; the robot gives way a little
    gained = robot.joint_velocity[joint] - before[joint]
    inertia = 0.226 * 0.132**2 + 0.0034 + 0.01
    assert gained == pytest.approx(4.5 / inertia * 0.005, rel=0.15)


def test_a_torque_cap_is_a_cap_and_no_power_is_none(kind):
    robot = hanging(kind)
    effort = MOTORS.effort.copy()
    effort[:3], effort[3:6] = 3.0, 0.0
    robot.limit(replace(kind.bounds, effort=effort))
    _, speed, torque = swing(robot)
    highest = np.abs(torque).max(axis=0)
    np.testing.assert_allclose(highest[:3], 3.0)
    np.testing.assert_allclose(highest[3:6], 0.0)
    assert (highest[6:] > 5.0).all()
    assert np.abs(speed[:, 3:6]).max() < np.abs(speed[:, 6:9]).max()


def test_a_speed_cap_keeps_the_momentum_in_the_air_and_spares_other_joints_on_the_ground(kind):
    robot = hanging(kind)
    robot.limit(replace(kind.bounds, velocity=3.0 * ONES))
    _, speed, _ = swing(robot)
    assert 2.99 < np.abs(speed).max() < 3.03
    mujoco.mj_subtreeVel(robot.model, robot.data)
    assert np.abs(robot.data.subtree_linvel[1]).max() < 0.01
    robot = Robot(kind)
    robot.limit(replace(kind.bounds, velocity=np.tile((2.0, 21.0, 21.0), 4)))
    _, speed, _ = swing(robot)
    assert np.abs(speed[:, ::3]).max() < 2.02
    assert np.abs(speed[:, 1::3]).max() > 5.0


def coast(kind, joint, **added):
    """Speeds of a joint that starts at 4 rad/s without power; (steps of physics,)."""
    robot = hanging(kind)
    robot.kind = a1(replace(MOTORS, decimation=1))
    row = {name: np.where(np.arange(12) == joint, value, 0.0) for name, value in added.items()}
    robot.limit(replace(kind.bounds, effort=0.0 * ONES, **row))
    robot.data.qvel[kind.qvel[joint]] = 4.0
    speeds = [4.0]
    for _ in range(40):
        robot.step(POSE)
        speeds.append(robot.joint_velocity[joint])
    return np.array(speeds)


def test_a_shorted_motor_brakes_and_dry_friction_slows_a_joint_to_rest(kind):
    calf = NAMES.index("FL_calf_joint")
    free, braked = coast(kind, calf), coast(kind, calf, damping=0.2)
    inertia = 0.226 * 0.132**2 + 0.0034 + 0.01  # of the calf about the knee; the robot gives way a little
    decay = np.log(free[10] / free[0] * braked[0] / braked[10]) / 0.05
    assert decay == pytest.approx(0.2 / inertia, rel=0.2)
    strong = coast(kind, calf, damping=20.0)  # a torque that is held for a step would be 3 times too much
    assert (strong > -1e-3).all()
    assert strong[-1] < 0.05
    rubbed = coast(kind, calf, friction=0.5)
    assert (rubbed[0] - rubbed[10]) / 0.05 == pytest.approx(0.5 / inertia, rel=0.2)
    assert np.abs(rubbed[-3:]).max() < 0.05  # it moves with the robot


def test_friction_holds_a_joint_against_a_motor_that_is_weaker(kind):
    moved = []
    for friction in (0.0, 3.0):
        robot = hanging(kind)
        robot.limit(replace(kind.bounds, effort=2.0 * ONES, friction=np.full(12, friction)))
        position, _, torque = swing(robot)
        assert np.abs(torque).max() == 2.0
        moved.append(np.abs(position - POSE).max())
    assert moved[0] > 0.3
    assert moved[1] < 0.001
    robot.limit(kind.bounds)
    for name in ("dof_damping", "dof_frictionloss", "dof_solref", "dof_solimp"):
        assert (getattr(robot.model, name) == getattr(kind.model, name)).all()


@pytest.mark.parametrize("width", [0.05, 0.0])
def test_a_window_holds_a_joint_and_a_locked_one_stays(kind, width):
    robot = Robot(kind)
    robot.limit(replace(kind.bounds, lower=POSE - width, upper=POSE + width))
    position, _, _ = swing(robot)
    beyond = np.maximum(position - POSE - width, POSE - width - position)
    assert beyond.max() < 1e-3
    assert np.abs(position - POSE).max() > 0.9 * width
    robot.limit(kind.bounds)
    position, _, _ = swing(robot)
    assert np.abs(position - POSE).max() > 0.3  # healthy again


def test_a_joint_beyond_its_window_comes_back_without_a_kick(kind):
    robot = hanging(kind)
    lower = kind.bounds.lower.copy()
    lower[2] = POSE[2] + 0.1
    robot.limit(replace(kind.bounds, lower=lower))
    fastest = 0.0
    for _ in range(40):
        robot.step(POSE)
        fastest = max(fastest, abs(robot.joint_velocity[2]))
    assert robot.joint_position[2] == pytest.approx(lower[2], abs=1e-3)
    assert fastest < 2.5  # 0.1 rad in 0.05 s


def test_a_start_changes_what_it_says(kind):
    start = Start(0.7, 2.0, np.array([0.1, 0.0, 0.0]), 1.1 * ONES, 0.9 * ONES, 0.3, np.arange(6) / 10.0, 1.2 * ONES)
    robot = Robot(kind)
    robot.reset(start)
    assert robot.model.body_mass[1] == pytest.approx(8.001)
    assert robot.model.body_inertia[1, 0] == pytest.approx(kind.model.body_inertia[1, 0] * 8.001 / 6.001)
    assert robot.model.body_ipos[1, 0] == pytest.approx(kind.model.body_ipos[1, 0] + 0.1)
    np.testing.assert_allclose(robot.model.geom_friction[1:, 0], 0.7)
    np.testing.assert_allclose(robot.angular_velocity, (0.3, 0.4, 0.5))
    np.testing.assert_allclose(robot.joint_position[1], 0.96)
    # the thigh's 1.2 stays inside the soft limits; the velocity is that of the centre of mass
    turned = robot.rotation.T @ (0.0, 0.1, 0.2) + np.cross((0.3, 0.4, 0.5), robot.model.body_ipos[1])
    np.testing.assert_allclose(robot.velocity, turned)
    robot.reset()
    assert robot.model.body_mass[1] == pytest.approx(6.001)
    assert kind.model.body_mass[1] == pytest.approx(6.001)


def test_friction_is_the_robots_own(kind):
    # on a slope of 20 degrees (tangent 0.36), 0.2 slides and 0.6 holds; the ground's own 1 would hold both
    slid = []
    for friction in (0.2, 0.6):
        robot = Robot(kind)
        robot.reset(Start(friction, 0.0, np.zeros(3), 4.0 * ONES, 4.0 * ONES, 0.0, np.zeros(6), ONES))
        for _ in range(50):
            robot.step(POSE)
        slope = np.radians(20.0)
        robot.model.opt.gravity[:] = 0.0, 9.81 * np.sin(slope), -9.81 * np.cos(slope)
        before = robot.data.qpos[1]
        for _ in range(25):
            robot.step(POSE)
        slid.append(robot.data.qpos[1] - before)
    assert slid[0] == pytest.approx(0.5 * 9.81 * (np.sin(slope) - 0.2 * np.cos(slope)) * 0.5**2, rel=0.3)
    assert slid[1] < 0.1 * slid[0]


@pytest.mark.parametrize(
    ("height", "quaternion", "falls"),
    [
        (0.3, (1, 0, 0, 0), False),
        (0.14, (1, 0, 0, 0), True),
        (0.5, (np.cos(0.45), np.sin(0.45), 0, 0), True),  # roll 0.9
        (0.5, (np.cos(0.35), np.sin(0.35), 0, 0), False),
        (0.5, (np.cos(0.75), 0, np.sin(0.75), 0), False),  # pitch 1.5
    ],
)
def test_falls_by_posture(kind, height, quaternion, falls):
    robot = Robot(kind)
    robot.data.qpos[2:7] = height, *quaternion
    assert robot.fallen == falls


def test_a_touch_of_the_trunk_is_a_fall_and_a_state_that_is_not_finite_is_detected():
    robot = Robot(a1(conditions=replace(CONDITIONS, max_roll_rad=None, max_pitch_rad=None, min_height_m=None)))
    robot.data.qpos[2:7] = 0.15, 0.0, 1.0, 0.0, 0.0  # on its back in the air
    robot.step(POSE)
    assert not robot.fallen
    for _ in range(15):
        robot.step(POSE)
    assert robot.fallen
    assert robot.finite
    robot.data.qvel[7] = np.nan
    robot.step(POSE)
    assert not robot.finite


def test_legs_collide_with_the_ground_and_not_with_each_other(kind):
    robot = Robot(kind)
    robot.data.qpos[2] = 0.0  # in the ground
    robot.data.qpos[kind.qpos[2::3]] = -2.6
    mujoco.mj_forward(robot.model, robot.data)
    assert robot.data.ncon
    assert (robot.model.geom_bodyid[robot.data.contact.geom] == 0).any(axis=1).all()


def test_a_start_is_drawn_from_its_range_by_seed_and_member_alone():
    first, again, other, seed = (draw_start(CONDITIONS, *key, 12) for key in ((1, 3), (1, 3), (1, 4), (2, 3)))
    assert (first.joint_factor == again.joint_factor).all()
    assert first.friction == again.friction
    assert (first.joint_factor != other.joint_factor).all()
    assert first.friction != seed.friction
    drawn = np.array([draw_start(CONDITIONS, 5, member, 12).friction for member in range(400)])
    assert 0.5 < drawn.min() < 0.51
    assert 1.49 < drawn.max() < 1.5


def legs(without):
    """A body for each joint; all but one have limits."""
    joints = [f'<joint name="{name}"{"" if name == without else " range='-60 60'"}/>' for name in NAMES]
    return "".join(f'<body>{joint}<geom size="0.1"/></body>' for joint in joints)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            '<body name="trunk"><joint name="FL_hip_joint"/><geom size="0.1"/></body>',
            "first joint has to be a free one",
        ),
        ('<body><freejoint/><geom size="0.1"/></body><geom name="ground" size="1"/>', "cannot read .*repeated name"),
        (
            '<body><freejoint/><geom size="0.1"/></body>',
            "own.xml has other joints than the policy.*give another --mjcf",
        ),
        (
            f'<body><freejoint/><geom size="0.1"/>{legs(without="FL_hip_joint")}</body>',
            "own.xml: FL_hip_joint has no limits, with which faults act; give it a range",
        ),
    ],
)
def test_a_model_of_others_that_does_not_fit_is_refused(tmp_path, body, words):
    path = tmp_path / "own.xml"
    path.write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    with pytest.raises(UmcError, match=words):
        RobotType(path, MOTORS, CONDITIONS, SolverCfg())


def test_a_body_whose_contact_is_a_fall_has_to_be_there():
    with pytest.raises(UmcError, match=r"a1\.xml has no body base, whose contact is a fall; export"):
        a1(conditions=replace(CONDITIONS, contact_bodies=["base"]))


def test_actuators_of_a_model_do_not_act(tmp_path):
    path = tmp_path / "own.xml"
    joints = '<body><freejoint/><geom size="0.1"/><body><joint name="a"/><geom size="0.1"/></body></body>'
    motors = '<actuator><position joint="a" kp="50"/></actuator>'
    path.write_text(f"<mujoco><worldbody>{joints}</worldbody>{motors}</mujoco>")
    model = load_robot(path, 0.005)
    data = mujoco.MjData(model)
    data.qpos[7] = 1.0
    mujoco.mj_forward(model, data)
    assert data.qfrc_actuator[6] == 0.0


@pytest.mark.parametrize("bits", ["", 'contype="0" conaffinity="1"', 'contype="2" conaffinity="0"', 'condim="1"'])
def test_geoms_of_any_model_stand_on_the_ground_with_their_own_friction(tmp_path, bits):
    path = tmp_path / "own.xml"
    geom = f'<geom type="box" size="0.1 0.1 0.1" friction="0.4" {bits}/>'
    visual = '<geom type="box" size="0.1 0.1 0.2" contype="0" conaffinity="0"/>'
    path.write_text(f'<mujoco><worldbody><body pos="0 0 0.09"><freejoint/>{geom}{visual}</body></worldbody></mujoco>')
    model = load_robot(path, 0.005)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert [(contact.friction[0], contact.dim) for contact in data.contact] == [(0.4, 3)] * 4


def test_unknown_robots_and_missing_files_are_refused(tmp_path):
    with pytest.raises(UmcError, match="robot spot is none of a1, g1, go2, h1, solo8; give its model with --mjcf FILE"):
        robot_mjcf("spot")
    with pytest.raises(UmcError, match="cannot read"):
        load_robot(tmp_path / "none.xml", 0.005)


@pytest.mark.parametrize("value", [np.nan, 3000.0])
def test_a_joint_that_diverges_under_a_limit_ends_no_rollout(value):
    kind = a1()
    robot, slow = Robot(kind), kind.bounds.velocity.copy()
    slow[0] = 3.0
    robot.limit(replace(kind.bounds, velocity=slow))
    robot.data.qpos[kind.qpos[0]] = value
    robot.step(POSE)
    assert robot.finite == np.isfinite(value)
