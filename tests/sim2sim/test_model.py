# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The MuJoCo model is the robot of the USD file, and its starts and falls are those of the tasks."""

import math
import re
import subprocess
import sys

import mujoco
import numpy as np
import pytest
from isaaclab_tasks.utils import load_cfg_from_registry
from pxr import Usd, UsdGeom, UsdPhysics
from umc.sim2sim.conditions import CONDITIONS, FORCE_HISTORY, FORCE_THRESHOLD, conditions_of, draw_start
from umc.sim2sim.model import read_robot, robot_usd
from umc.tasks.registry import load_tasks, task_ids
from umc.utils.errors import UmcError
from umc.utils.naming import task_parts

ROBOTS = ("a1", "g1", "h1", "solo8")


@pytest.mark.parametrize("robot", ROBOTS)
def test_bodies_lie_and_weigh_as_in_the_file(robot):
    model = read_robot(robot_usd(robot), 0.005)
    data = mujoco.MjData(model)
    data.qpos[:7] = (0, 0, 0, 1, 0, 0, 0)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    stage = Usd.Stage.Open(str(robot_usd(robot)))
    bodies = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.RigidBodyAPI)]
    assert model.nbody == len(bodies) + 1
    for prim in bodies:
        body, mass = model.body(prim.GetName()).id, UsdPhysics.MassAPI(prim)
        placed = np.array(UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(Usd.TimeCode.Default())).T
        turned = data.xmat[body].reshape(3, 3)
        np.testing.assert_allclose(data.xpos[body], placed[:3, 3], atol=1e-6)
        np.testing.assert_allclose(turned, placed[:3, :3], atol=1e-5)
        np.testing.assert_allclose(model.body_mass[body], mass.GetMassAttr().Get(), rtol=1e-6)
        com = placed[:3, :3] @ np.array(mass.GetCenterOfMassAttr().Get()) + placed[:3, 3]
        np.testing.assert_allclose(data.xipos[body], com, atol=1e-6)
        quaternion = mass.GetPrincipalAxesAttr().Get()
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, np.array([quaternion.GetReal(), *quaternion.GetImaginary()], dtype=float))
        axes = axes.reshape(3, 3)
        wanted = axes @ np.diag(mass.GetDiagonalInertiaAttr().Get()) @ axes.T
        own = data.ximat[body].reshape(3, 3)
        found = turned.T @ own @ np.diag(model.body_inertia[body]) @ own.T @ turned
        np.testing.assert_allclose(found, wanted, atol=1e-7)


@pytest.mark.parametrize("robot", ROBOTS)
def test_joints_turn_and_stop_as_in_the_file(robot):
    model = read_robot(robot_usd(robot), 0.005)
    stage = Usd.Stage.Open(str(robot_usd(robot)))
    hinges = [prim for prim in stage.Traverse() if prim.IsA(UsdPhysics.RevoluteJoint)]
    assert model.njnt == len(hinges) + 1
    for prim in hinges:
        hinge, joint = UsdPhysics.RevoluteJoint(prim), model.joint(prim.GetName()).id
        dof = model.jnt_dofadr[joint]
        limits = [math.radians(value.Get()) for value in (hinge.GetLowerLimitAttr(), hinge.GetUpperLimitAttr())]
        np.testing.assert_allclose(model.jnt_range[joint], limits, atol=1e-7)
        assert model.jnt_limited[joint]
        effort = UsdPhysics.DriveAPI(prim, "angular").GetMaxForceAttr().Get()
        np.testing.assert_allclose(model.jnt_actfrcrange[joint], (-effort, effort))
        assert model.dof_armature[dof] == pytest.approx(prim.GetAttribute("newton:armature").Get())
        np.testing.assert_allclose(model.jnt_solref[joint], prim.GetAttribute("mjc:solreflimit").Get())
        np.testing.assert_allclose(model.jnt_solimp[joint], prim.GetAttribute("mjc:solimplimit").Get())


def test_a_joint_turns_about_its_axis():
    # a positive thigh angle swings A1's leg backwards, a positive calf angle its foot: Unitree's convention
    model = read_robot(robot_usd("a1"), 0.005)
    data = mujoco.MjData(model)

    def place_of_foot(joint, angle):
        data.qpos[:] = 0.0
        data.qpos[3] = 1.0
        data.qpos[model.joint(joint).qposadr[0]] = angle
        mujoco.mj_kinematics(model, data)
        calf = model.body("FL_calf").id
        return data.xpos[calf] + data.xmat[calf].reshape(3, 3) @ (0.0, 0.0, -0.2)

    straight = place_of_foot("FL_hip_joint", 0.0)
    np.testing.assert_allclose(place_of_foot("FL_thigh_joint", 0.5) - straight, turned_back(0.4, 0.5), atol=1e-6)
    np.testing.assert_allclose(place_of_foot("FL_calf_joint", -1.0) - straight, turned_back(0.2, -1.0), atol=1e-6)
    assert place_of_foot("FL_hip_joint", 0.5)[1] > straight[1] + 0.1  # outwards, to the left


def turned_back(length, angle):
    """How a rod that hangs down moves its lower end when it turns about y."""
    return -length * math.sin(angle), 0.0, length * (1.0 - math.cos(angle))


def test_self_collision_is_off_and_the_ground_is_not():
    model = read_robot(robot_usd("a1"), 0.005)
    data = mujoco.MjData(model)
    data.qpos[:] = 0.0
    data.qpos[2:4] = 0.0, 1.0  # in the ground
    data.qpos[[model.joint(f"{leg}_calf_joint").qposadr[0] for leg in ("FL", "FR", "RL", "RR")]] = -2.6
    mujoco.mj_forward(model, data)
    assert data.ncon
    assert (model.geom_bodyid[data.contact.geom] == 0).any(axis=1).all()


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(UmcError, match="choose one of a1, g1, h1, solo8"):
        robot_usd("spot")
    with pytest.raises(UmcError, match="cannot read"):
        read_robot(tmp_path / "none.usda", 0.005)
    text = robot_usd("a1").read_text().replace("PhysicsRevoluteJoint", "PhysicsPrismaticJoint", 1)
    (tmp_path / "slides.usda").write_text(text)
    with pytest.raises(UmcError, match="FL_hip_joint"):
        read_robot(tmp_path / "slides.usda", 0.005)


@pytest.mark.parametrize("robot", ROBOTS)
def test_starts_and_falls_are_those_of_the_task(robot):
    load_tasks()
    task = next(one for one in task_ids() if task_parts(one) == (robot, 2))
    cfg = load_cfg_from_registry(task, "env_cfg_entry_point")
    mine, events, ends = CONDITIONS[robot], vars(cfg.events), vars(cfg.terminations)
    assert cfg.scene.robot.init_state.pos[2] == mine.height
    assert events["friction"].params["static_friction_range"] == mine.friction
    payload = events.get("trunk_mass") or events["pelvis_mass"]
    assert payload.params["mass_distribution_params"] == mine.payload
    com = events["trunk_com"].params["com_range"] if "trunk_com" in events else dict.fromkeys("xyz", (0.0, 0.0))
    assert tuple(com[axis] for axis in "xyz") == mine.com
    strength = events.get("motor_strength")
    gains = (1.0, 1.0) if strength is None else strength.params["stiffness_distribution_params"]
    assert gains == mine.gains
    assert strength is None or strength.params["damping_distribution_params"] == mine.gains
    assert events["reset_joints"].params["position_range"] == mine.joints
    base = events["reset_base"].params
    assert set(base["velocity_range"].values()) == {mine.velocity}
    assert base["pose_range"]["yaw"] == pytest.approx(mine.yaw)
    known = {"begin_faults", "faults", "friction", "trunk_mass", "pelvis_mass", "trunk_com", "motor_strength"}
    assert set(events) - known == {"reset_joints", "reset_base"} | ({"push"} if "push" in events else set())

    names = [read_robot(robot_usd(robot), 0.005).body(number).name for number in range(1, 9)]
    touch = ends.get("trunk_contact") or ends["pelvis_contact"]
    patterns = touch.params["sensor_cfg"].body_names
    patterns = [patterns] if isinstance(patterns, str) else patterns
    for name in names:
        wanted = any(re.fullmatch(pattern, name) for pattern in patterns)
        assert any(re.fullmatch(pattern, name) for pattern in mine.forbidden) == wanted
    assert touch.params["threshold"] == FORCE_THRESHOLD
    assert cfg.scene.contact_forces.history_length == FORCE_HISTORY
    tilt = ends["orientation"].params if "orientation" in ends else {"max_roll": None, "max_pitch": None}
    assert (tilt["max_roll"], tilt["max_pitch"]) == (mine.max_roll, mine.max_pitch)
    low = ends["height"].params["minimum_height"] if "height" in ends else None
    assert low == mine.min_height
    known = {"time_out", "trunk_contact", "pelvis_contact", "orientation", "height", "non_finite_state"}
    assert set(ends) <= known


def test_a_start_depends_on_seed_and_member_alone():
    conditions = conditions_of("A1")
    first, again, other, seed = (draw_start(conditions, *key, 12) for key in ((1, 3), (1, 3), (1, 4), (2, 3)))
    assert (first.joints == again.joints).all()
    assert first.friction == again.friction
    assert (first.joints != other.joints).all()
    assert first.friction != seed.friction
    drawn = np.array([draw_start(conditions, 5, member, 12).friction for member in range(400)])
    assert drawn.min() < 0.51 < 1.49 < drawn.max()
    with pytest.raises(UmcError, match="choose one of"):
        conditions_of("spot")


def test_walking_needs_no_isaac_lab():
    modules = ("rollout", "study", "agreement", "main")
    lines = ["import sys", *(f"import umc.evaluation.mujoco_{name}" for name in modules)]
    code = "; ".join([*lines, "sys.exit('isaaclab' in sys.modules)"])
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
