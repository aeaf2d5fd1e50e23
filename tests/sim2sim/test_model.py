# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The MJCF file is the robot of the USD file, and starts are drawn from the exported figures."""

import math
import subprocess
import sys

import mujoco
import numpy as np
import pytest
from exported_a1 import A1
from pxr import Usd, UsdGeom, UsdPhysics
from umc.sim2sim.conditions import Conditions, draw_start
from umc.sim2sim.robot import load_robot, robot_mjcf
from umc.utils.errors import UmcError

ROBOTS = ("a1", "g1", "h1", "solo8")


def both(robot):
    """The MuJoCo model and the USD stage of a robot."""
    path = robot_mjcf(robot)
    return load_robot(path, 0.005), Usd.Stage.Open(str(path.with_suffix(".usda")))


@pytest.mark.parametrize("robot", ROBOTS)
def test_bodies_lie_and_weigh_as_in_the_file(robot):
    model, stage = both(robot)
    data = mujoco.MjData(model)
    data.qpos[:7] = (0, 0, 0, 1, 0, 0, 0)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
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
    model, stage = both(robot)
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
    model = load_robot(robot_mjcf("a1"), 0.005)
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
    model = load_robot(robot_mjcf("a1"), 0.005)
    data = mujoco.MjData(model)
    data.qpos[:] = 0.0
    data.qpos[2:4] = 0.0, 1.0  # in the ground
    data.qpos[[model.joint(f"{leg}_calf_joint").qposadr[0] for leg in ("FL", "FR", "RL", "RR")]] = -2.6
    mujoco.mj_forward(model, data)
    assert data.ncon
    assert (model.geom_bodyid[data.contact.geom] == 0).any(axis=1).all()


def test_unknown_robots_missing_files_and_old_exports_are_refused(tmp_path):
    with pytest.raises(UmcError, match="choose one of a1, g1, h1, solo8"):
        robot_mjcf("spot")
    with pytest.raises(UmcError, match="cannot read"):
        load_robot(tmp_path / "none.xml", 0.005)
    with pytest.raises(UmcError, match="export the checkpoint again"):
        Conditions.from_description({"joints": []})


@pytest.mark.parametrize("robot", ROBOTS)
def test_colliders_are_those_of_the_usd(robot):
    model, stage = both(robot)
    shapes = [prim for prim in stage.Traverse() if prim.HasAPI(UsdPhysics.CollisionAPI)]
    assert model.ngeom == len(shapes) + 1
    for prim in shapes:
        geom = model.geom(f"{prim.GetParent().GetName()}/{prim.GetName()}")
        kind = mujoco.mjtGeom(int(geom.type[0])).name.removeprefix("mjGEOM_").capitalize()
        assert kind.replace("Box", "Cube") == prim.GetTypeName()
        get = prim.GetAttribute
        if kind == "Box":
            size = np.array(get("xformOp:scale").Get()) * get("size").Get() / 2.0
        else:
            size = [get("radius").Get(), *([] if kind == "Sphere" else [get("height").Get() / 2.0])]
        np.testing.assert_allclose(geom.size[: len(size)], size, atol=1e-6)
        np.testing.assert_allclose(geom.pos, get("xformOp:translate").Get(), atol=1e-6)
        orient = get("xformOp:orient").Get()
        np.testing.assert_allclose(geom.quat, [orient.GetReal(), *orient.GetImaginary()], atol=1e-4)


def test_a_start_depends_on_seed_and_member_alone():
    conditions = Conditions.from_description(A1)
    first, again, other, seed = (draw_start(conditions, *key, 12) for key in ((1, 3), (1, 3), (1, 4), (2, 3)))
    assert (first.joints == again.joints).all()
    assert first.friction == again.friction
    assert (first.joints != other.joints).all()
    assert first.friction != seed.friction
    drawn = np.array([draw_start(conditions, 5, member, 12).friction for member in range(400)])
    assert drawn.min() < 0.51 < 1.49 < drawn.max()


def test_it_needs_no_isaac_lab():
    modules = ("umc.sim2sim.rollout", "umc.sim2sim.study", "umc.sim2sim.agreement", "umc.cli.sim2sim")
    code = "; ".join([f"import sys, {', '.join(modules)}", "sys.exit('isaaclab' in sys.modules)"])
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
