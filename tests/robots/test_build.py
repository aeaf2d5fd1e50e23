# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The committed robots are what the builder writes and what the public URDFs contain."""

import math
import re
from hashlib import sha256

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics
from umc.robots import A1_CFG, G1_CFG, GO2_CFG, H1_CFG, SOLO8_CFG
from umc.robots.builder import BUILD_CFGS, BuildCfg, build, build_visuals, source
from umc.robots.builder.__main__ import main
from umc.robots.builder.cfg import Fit, Shape
from umc.robots.solo8 import RESET_SCALE
from umc.robots.spawn import DATA
from umc.sim2sim.robot import load_robot
from umc.utils.cli import run_main
from umc.utils.errors import UmcError
from usd_comparison import TOLERANCE, compare, reduced_model

CONFIGURATIONS = {"a1": A1_CFG, "g1": G1_CFG, "go2": GO2_CFG, "h1": H1_CFG, "solo8": SOLO8_CFG}
ROBOTS = sorted(CONFIGURATIONS)
PHYSICS = {
    "a1": "5a92796420398deab8745033f54e5f0cf205465f1e8c333e63512c8913863e71",
    "g1": "1a3889f887f36e1922debaaf87dc44cda587001c8d375f1ce9c7f8e2fde8faa2",
    "go2": "ed449cd487b21187747361384b41d3c3f9b7dda20e60cf8acb3aae00f30e4a06",
    "h1": "cdfbf9fc36c4123cbe9f9478cfd4525ae2d0c6015869b958d5dd32e8b19d52fb",
    "solo8": "ac6aca188fc56c999515a993b627235582d092e04978b94195ffa4683f348703",
}
"""Hash of each robot's bodies, joints and colliders."""
MOST_BYTES = 2_000_000
"""Of a robot's visual meshes."""
VISUALS = DATA / "solo8_visuals.usdc"
"""The meshes that the test rebuilds: the fastest."""


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


def physics_of(stage):
    """Everything in a USD file but what is for the eye: a hash of all prims, schemas, figures and targets."""
    lines = []
    for prim in stage.Traverse():
        if prim.IsA(UsdGeom.Mesh):
            assert not prim.HasAuthoredMetadata("apiSchemas")
            continue
        # as written: what GetAppliedSchemas returns depends on the schemas that engines have registered
        lines.append(f"{prim.GetPath()} {prim.GetTypeName()} {prim.GetMetadata('apiSchemas')}")
        for attribute in prim.GetAuthoredAttributes():
            if attribute.GetName() not in ("purpose", "primvars:displayColor"):
                lines.append(f"{attribute.GetName()} {attribute.GetTypeName()} {attribute.Get()}")
        lines += [f"{link.GetName()} {link.GetTargets()}" for link in prim.GetAuthoredRelationships()]
    return sha256("\n".join(lines).encode()).hexdigest()


def test_physics_is_that_of_the_pretrained_policies(robot, stage):
    """The hashes are of the files before they had meshes; a policy trained on other figures is not comparable."""
    assert physics_of(stage) == PHYSICS[robot]


def test_another_release_of_the_sources_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(source, "EXAMPLE_ROBOT_DATA_VERSION", "5.0.0")
    assert run_main(main, ["a1"]) == 2
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
    knee = next(prim for prim in of_type(stage, UsdPhysics.RevoluteJoint) if "calf" in prim.GetName())
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
def test_a_wrong_figure_is_found(figure, edit, models, tmp_path):
    """Of the comparison itself: a copy of A1 is changed."""
    path = tmp_path / "wrong.usda"
    Usd.Stage.Open(str(DATA / "a1.usda")).Export(str(path))
    stage = Usd.Stage.Open(str(path))
    edit(stage)
    stage.Save()
    worst = compare(path, models["a1"])
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
        assert value(legs.actuator_effort_limit, name) == pytest.approx(25.0 if robot == "a1" else effort, rel=1e-6)


HEIGHTS = {
    "a1": (-0.42, 0.06),
    "g1": (-0.79, 0.53),
    "go2": (-0.45, 0.09),
    "h1": (-1.04, 0.75),
    "solo8": (-0.34, 0.03),
}
"""Lowest and highest point of each robot in the frame of its base, all joints at 0 [m]: feet and head are there."""


def test_every_link_has_a_mesh_at_its_place_and_no_collider_is_drawn(robot, stage):
    path = DATA / f"{robot}_visuals.usdc"
    assert path.stat().st_size < MOST_BYTES
    for body in stage.GetDefaultPrim().GetChildren():
        meshes = [UsdGeom.Mesh(prim) for prim in body.GetChildren() if prim.IsA(UsdGeom.Mesh)]
        assert meshes, f"{body.GetName()} is not seen"
        for mesh in meshes:
            assert len(mesh.GetNormalsAttr().Get()) == len(mesh.GetPointsAttr().Get())
    purposes = {UsdGeom.Imageable(prim).ComputePurpose() for prim in with_api(stage, UsdPhysics.CollisionAPI)}
    assert purposes == {"guide"}
    box = UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["default"]).ComputeWorldBound(stage.GetDefaultPrim())
    found = box.ComputeAlignedRange()
    assert (found.GetMin()[2], found.GetMax()[2]) == pytest.approx(HEIGHTS[robot], abs=0.01)
    assert abs(found.GetMin()[1] + found.GetMax()[1]) < 0.01  # as wide to the left as to the right


def test_visual_meshes_come_from_the_urdf(tmp_path):
    built, committed = (Usd.Stage.Open(str(path)) for path in (build_visuals(BUILD_CFGS["solo8"], tmp_path), VISUALS))
    assert [str(prim.GetPath()) for prim in built.Traverse()] == [str(prim.GetPath()) for prim in committed.Traverse()]
    cache = UsdGeom.BBoxCache(Usd.TimeCode.Default(), ["default"])
    for prim in of_type(committed, UsdGeom.Mesh):
        boxes = [cache.ComputeLocalBound(s.GetPrimAtPath(prim.GetPath())).GetRange() for s in (built, committed)]
        np.testing.assert_allclose(boxes[0].GetMin(), boxes[1].GetMin(), atol=1e-3)
        np.testing.assert_allclose(boxes[0].GetMax(), boxes[1].GetMax(), atol=1e-3)


CUBE = "".join(f"v {x} {y} {z}\n" for x in (-0.1, 0.1) for y in (-0.2, 0.2) for z in (-0.3, 0.3)) + (
    "f 1 2 4 3\nf 5 7 8 6\nf 1 5 6 2\nf 3 4 8 7\nf 1 3 7 5\nf 2 6 8 4\n"
)
LINK = """<link name="{name}">
  <inertial><mass value="2"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>{collision}
</link>"""
CUBE_COLLISION = '<collision><geometry><mesh filename="package://dog/meshes/cube.obj"/></geometry></collision>'
DOG = """<robot name="dog">{links}<joint name="hip" type="{kind}"><parent link="trunk"/><child link="leg"/>
  <axis xyz="0 1 0"/><limit {limits} effort="20" {velocity}/></joint></robot>"""


@pytest.fixture
def dog(tmp_path):
    """Writes a URDF of one's own, as a ROS package has it, and returns its cfg."""

    def write(collision=CUBE_COLLISION, velocity='velocity="30"', kind="revolute", limits='lower="-1" upper="1"'):
        links = LINK.format(name="trunk", collision=collision) + LINK.format(name="leg", collision="")
        for name, text in (
            ("urdf/dog.urdf", DOG.format(links=links, velocity=velocity, kind=kind, limits=limits)),
            ("meshes/cube.obj", CUBE),
        ):
            (tmp_path / "dog" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "dog" / name).write_text(text)
        return BuildCfg(
            name="dog",
            notice="",
            urdf=lambda: tmp_path / "dog/urdf/dog.urdf",
            bodies=("trunk", "leg"),
            joints=("hip",),
            armature={".*": 0.01},
            shapes=(Shape(".*", Fit.BOX),),
            colors=((".*", (0.5, 0.5, 0.5)),),
        )

    return write


def test_collision_meshes_of_ones_own_urdf_become_primitives(dog, tmp_path):
    path = build(dog(), tmp_path / "out")
    (geom,) = mujoco.MjSpec.from_file(str(path.with_suffix(".xml"))).geoms
    np.testing.assert_allclose(sorted(geom.size), (0.1, 0.2, 0.3), atol=1e-3)


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("no collision mesh package://dog/meshes/cube.dae with a suffix .stl, .obj, .msh; ", {"mesh": "cube.dae"}),
        ("no collision mesh package://dog/meshes/gone.stl", {"mesh": "gone.stl"}),
        ("dog has no collision shapes; add a Primitive for the trunk", {"collision": ""}),
        (
            "dog: hip has no position limits, in which faults act; give them in the URDF",
            {"kind": "continuous", "limits": ""},
        ),
        ("dog: no velocity limit of hip; give it in the URDF, or BuildCfg.limits", {"velocity": ""}),
    ],
)
def test_a_urdf_that_would_build_another_robot_is_refused(words, changes, dog, tmp_path):
    if mesh := changes.get("mesh"):
        changes = {"collision": CUBE_COLLISION.replace("cube.obj", mesh)}
    with pytest.raises(UmcError, match=re.escape(words)):
        build(dog(**changes), tmp_path / "out")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--visuals", "h1"], "no package on PyPI has pelvis.STL; name the folder that holds it with --meshes\n"),
        (["a1", "--out", "/proc/x"], "cannot write there"),
        (["a1", "--out", __file__], "is a file"),
    ],
)
def test_missing_meshes_and_a_folder_that_cannot_be_written_are_one_line(arguments, words, capsys, tmp_path):
    assert run_main(main, ["--out", str(tmp_path), *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.startswith("error: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("robot", "low", "high"), [("a1", 0.5, 1.5), ("go2", 0.5, 1.5), ("h1", 0.5, 1.5), ("solo8", *RESET_SCALE)]
)
def test_no_foot_starts_in_the_ground(robot, low, high):
    """Resets scale the joints of the default pose."""
    state = CONFIGURATIONS[robot].init_state
    model = load_robot(DATA / f"{robot}.xml", 0.005)
    model.geom_margin[:] = 1.0  # contacts tell distances, too
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE  # which keeps the margins of the file
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
        ("go2", "MPL-2.0", "MPL-2.0"),
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
