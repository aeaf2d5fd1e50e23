# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The committed robots are what the builder writes and what the public URDFs contain."""

import math
import re
import sys

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics
from umc.robots import A1_CFG, G1_CFG, H1_CFG, SOLO8_CFG
from umc.robots.builder import BUILD_CFGS, build, source
from umc.robots.builder.__main__ import main
from umc.robots.solo8 import RESET_SCALE
from umc.robots.spawn import DATA
from umc.sim2sim.robot import load_robot
from usd_comparison import TOLERANCE, compare, reduced_model

CONFIGURATIONS = {"a1": A1_CFG, "g1": G1_CFG, "h1": H1_CFG, "solo8": SOLO8_CFG}
ROBOTS = sorted(CONFIGURATIONS)


@pytest.fixture(scope="module")
def models():
    """Pinocchio's reading of every source."""
    return {name: reduced_model(cfg) for name, cfg in BUILD_CFGS.items()}


@pytest.fixture(params=ROBOTS)
def robot(request):
    return request.param


@pytest.fixture
def stage(robot):
    return Usd.Stage.Open(str(DATA / f"{robot}.usda"))


def of_type(stage, schema):
    return [prim for prim in stage.Traverse() if prim.IsA(schema)]


def with_api(stage, schema):
    return [prim for prim in stage.Traverse() if prim.HasAPI(schema)]


def test_rebuild_is_byte_identical(robot, tmp_path):
    usd = build(BUILD_CFGS[robot], tmp_path)
    for suffix in (".usda", ".xml"):
        committed = (DATA / f"{robot}{suffix}").read_bytes()
        assert usd.with_suffix(suffix).read_bytes() == committed
        assert len(committed) < 60_000


def test_another_release_of_the_sources_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(source, "EXAMPLE_ROBOT_DATA_VERSION", "5.0.0")
    monkeypatch.setattr(sys, "argv", ["build", "a1"])
    assert main() == 2
    assert capsys.readouterr().err.endswith("pip install example-robot-data==5.0.0\n")


def test_figures_agree_with_pinocchio(robot, models):
    worst = compare(DATA / f"{robot}.usda", models[robot])
    assert max(worst.values()) < TOLERANCE, worst


def test_the_mjcf_is_the_robot_of_the_usd(robot, stage):
    mjcf = DATA / f"{robot}.xml"
    worst = dict(compare(DATA / f"{robot}.usda", pin.buildModelFromMJCF(str(mjcf))))
    worst.pop("velocity_limit")  # MJCF has none
    assert max(worst.values()) < TOLERANCE, worst
    model = mujoco.MjModel.from_xml_path(str(mjcf))
    hinges, shapes = of_type(stage, UsdPhysics.RevoluteJoint), with_api(stage, UsdPhysics.CollisionAPI)
    assert (model.njnt, model.ngeom) == (len(hinges) + 1, len(shapes))
    for prim in hinges:
        joint = model.joint(prim.GetName())
        assert joint.limited
        assert joint.armature == pytest.approx(prim.GetAttribute("newton:armature").Get())
        np.testing.assert_allclose(joint.solref, prim.GetAttribute("mjc:solreflimit").Get())
        np.testing.assert_allclose(joint.solimp, prim.GetAttribute("mjc:solimplimit").Get())
    for prim in shapes:
        geom, get = model.geom(f"{prim.GetParent().GetName()}/{prim.GetName()}"), prim.GetAttribute
        kind = mujoco.mjtGeom(int(geom.type[0])).name.removeprefix("mjGEOM_").capitalize()
        assert kind.replace("Box", "Cube") == prim.GetTypeName()
        if kind == "Box":
            size = np.array(get("xformOp:scale").Get()) * get("size").Get() / 2.0
        else:
            size = [get("radius").Get(), *([] if kind == "Sphere" else [get("height").Get() / 2.0])]
        np.testing.assert_allclose(geom.size[: len(size)], size, atol=1e-6)
        np.testing.assert_allclose(geom.pos, get("xformOp:translate").Get(), atol=1e-6)
        orient = get("xformOp:orient").Get()
        np.testing.assert_allclose(geom.quat, [orient.GetReal(), *orient.GetImaginary()], atol=1e-4)


def longer_shank(stage):
    knee = next(p for p in of_type(stage, UsdPhysics.RevoluteJoint) if re.search("knee|calf|KFE", p.GetName()))
    position = UsdPhysics.Joint(knee).GetLocalPos0Attr()
    position.Set(position.Get() + Gf.Vec3f(0, 0, 1e-3))


def more(attribute, factor):
    """An edit that scales one attribute of the first prim where it is not zero."""

    def edit(stage):
        found = (prim.GetAttribute(attribute) for prim in stage.Traverse() if prim.HasAttribute(attribute))
        value = next(value for value in found if np.any(np.array(value.Get())))
        value.Set(value.Get() * factor)

    return edit


@pytest.mark.parametrize(
    ("figure", "edit"),
    [
        ("mass", more("physics:mass", 1.001)),
        ("center_of_mass", more("physics:centerOfMass", 1.1)),
        ("inertia", more("physics:diagonalInertia", 1.01)),
        ("position_limit", more("physics:upperLimit", 1.001)),
        ("effort_limit", more("drive:angular:physics:maxForce", 0.99)),
        ("velocity_limit", more("newton:velocityLimit", 1.001)),
        ("velocity_limit", more("physxJoint:maxJointVelocity", 1.001)),
        ("kinematics", longer_shank),
    ],
)
def test_a_wrong_figure_is_found(figure, edit, robot, stage, models, tmp_path):
    edit(stage)
    stage.GetRootLayer().Export(str(tmp_path / "wrong.usda"))
    worst = compare(tmp_path / "wrong.usda", models[robot])
    assert worst[figure] > TOLERANCE
    assert all(error < TOLERANCE for other, error in worst.items() if other != figure), worst


def test_actuators_and_both_engines_have_the_limits_of_the_file(robot, stage):
    """Explicit actuators carry their own copy of the limits; A1's effort limit alone is lower (A1-Walk)."""
    legs = CONFIGURATIONS[robot].actuators["legs"]

    def value(field, name):
        return field if isinstance(field, float) else next(v for rule, v in field.items() if re.fullmatch(rule, name))

    for prim in of_type(stage, UsdPhysics.RevoluteJoint):
        name = prim.GetName()
        assert prim.GetAttribute("newton:armature").Get() == prim.GetAttribute("physxJoint:armature").Get() > 0.0
        speed = prim.GetAttribute("newton:velocityLimit").Get()
        assert speed == prim.GetAttribute("physxJoint:maxJointVelocity").Get()
        speed *= math.pi / 180.0
        effort = UsdPhysics.DriveAPI(prim, "angular").GetMaxForceAttr().Get()
        assert value(legs.actuator_velocity_limit, name) == pytest.approx(speed, rel=1e-6)
        assert value(legs.armature, name) == pytest.approx(prim.GetAttribute("newton:armature").Get(), rel=1e-6)
        assert value(legs.actuator_effort_limit, name) == (25.0 if robot == "a1" else effort)


FEET = {
    "a1": (".*_calf", UsdGeom.Sphere, 4),
    "g1": (".*_ankle_roll_link", UsdGeom.Sphere, 8),
    "h1": (".*_ankle_link", UsdGeom.Cube, 2),
    "solo8": (".*_LOWER_LEG", UsdGeom.Sphere, 4),
}
"""Bodies that carry the feet, the shape that touches the ground, and how many there are."""


def test_every_link_has_a_shape_and_the_feet_have_colliders(robot, stage):
    for body in stage.GetDefaultPrim().GetChildren():
        assert [p for p in body.GetChildren() if p.IsA(UsdGeom.Gprim)], f"{body.GetName()} has no shape"
    bodies, shape, count = FEET[robot]
    colliders = [prim for prim in with_api(stage, UsdPhysics.CollisionAPI) if prim.IsA(shape)]
    assert sum(re.fullmatch(bodies, prim.GetParent().GetName()) is not None for prim in colliders) == count


@pytest.mark.parametrize(("robot", "low", "high"), [("a1", 0.5, 1.5), ("h1", 0.5, 1.5), ("solo8", *RESET_SCALE)])
def test_no_foot_starts_in_the_ground(robot, low, high):
    """Resets scale the joints of the default pose."""
    state = CONFIGURATIONS[robot].init_state
    model = load_robot(DATA / f"{robot}.xml", 0.005)
    model.geom_margin[:] = 1.0  # contacts tell distances, too
    data = mujoco.MjData(model)
    random, lowest = np.random.default_rng(0), math.inf
    for _ in range(300):
        data.qpos[:7] = (0, 0, state.pos[2], 1, 0, 0, 0)
        for name in BUILD_CFGS[robot].joints:
            angle = next(a for rule, a in state.joint_pos.items() if re.fullmatch(rule, name))
            data.qpos[model.joint(name).qposadr] = angle * random.uniform(low, high)
        mujoco.mj_fwdPosition(model, data)
        lowest = min(lowest, data.contact.dist.min())
    assert -0.005 < lowest < 0.06


@pytest.mark.parametrize(
    ("robot", "spdx", "text"),
    [
        ("a1", "MPL-2.0", "MPL-2.0"),
        ("g1", "BSD-3-Clause", "BSD-3-Clause-Unitree"),
        ("h1", "BSD-3-Clause", "BSD-3-Clause-Unitree-RL"),
        ("solo8", "BSD-3-Clause", "BSD-3-Clause-ODRI"),
    ],
)
def test_licence_travels_with_the_file(robot, stage, spdx, text):
    notice = stage.GetRootLayer().documentation
    assert f"SPDX-License-Identifier: {spdx}" in notice
    assert (DATA / "licenses" / f"{text}.txt").read_text()
    assert f"{robot}.usda" in (DATA / "PROVENANCE.md").read_text()
    assert notice in (DATA / f"{robot}.xml").read_text().replace("&quot;", '"')
