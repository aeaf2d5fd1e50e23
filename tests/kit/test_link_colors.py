# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Colors on real USD stages: what is seen, what is left alone, and that nothing stays behind."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pxr import Gf, Sdf, Tf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt
from umc.kit.link_colors import LinkColors, robot_path
from umc.rendering.colors import FAULT_COLOR, SENSOR_COLOR
from umc.robots import A1_CFG, G1_CFG

RED, BLUE, GRAY = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.5, 0.5, 0.5)
ENVS = ("/World/envs/env_0", "/World/envs/env_1")
ROBOT = f"{ENVS[1]}/Robot"


@pytest.fixture
def stage() -> Usd.Stage:
    """Two A1."""
    stage = Usd.Stage.CreateInMemory()
    for env in ENVS:
        stage.DefinePrim(f"{env}/Robot", "Xform").GetReferences().AddReference(A1_CFG.spawn.usd_path)
    return stage


def link(stage: Usd.Stage, path: str) -> Usd.Prim:
    prim = stage.DefinePrim(path, "Xform")
    UsdPhysics.RigidBodyAPI.Apply(prim)
    return prim


def material(stage: Usd.Stage, path: str) -> UsdShade.Material:
    made = UsdShade.Material.Define(stage, path)
    shader = UsdShade.Shader.Define(stage, f"{path}/Shader")
    made.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
    return made


def text(stage: Usd.Stage) -> str:
    """All that can be seen of a stage, session layer included."""
    return stage.Flatten().ExportToString()


def display_color(stage: Usd.Stage, path: str) -> tuple[float, ...]:
    (color,) = UsdGeom.PrimvarsAPI(stage.GetPrimAtPath(path)).GetPrimvar("displayColor").ComputeFlattened()
    return tuple(color)


def bound_color(stage: Usd.Stage, path: str) -> tuple[float, ...]:
    made, _ = UsdShade.MaterialBindingAPI(stage.GetPrimAtPath(path)).ComputeBoundMaterial()
    shader = made.ComputeSurfaceSource()[0]
    return tuple(shader.GetInput("diffuseColor").Get())


def test_every_shape_of_the_link_is_colored_in_the_session_only(stage):
    untouched = text(stage)
    shapes = [p for p in stage.Traverse() if p.IsA(UsdGeom.Gprim)]
    assert LinkColors().show(stage, ROBOT, {"FL_calf": RED}) == ""
    red = {str(p.GetPath()) for p in shapes if display_color(stage, str(p.GetPath())) == RED}
    assert red == {str(p.GetPath()) for p in shapes if str(p.GetPath()).startswith(f"{ROBOT}/FL_calf/")}
    assert len(red) == 3  # two colliders and a mesh
    assert text(stage) != untouched
    # the file and its edit target stay as they are
    assert "1, 0, 0" not in stage.GetRootLayer().ExportToString()
    assert stage.GetEditTarget().GetLayer() == stage.GetRootLayer()
    assert LinkColors().show(stage, "/World/envs/env_7/Robot", {"FL_calf": RED}) == (
        "no colors: the stage has no prim /World/envs/env_7/Robot"
    )


def test_a_fault_between_the_joints_of_an_ankle_is_seen_on_the_foot_and_red_wins(stage):
    stage.DefinePrim("/World/G1", "Xform").GetReferences().AddReference(G1_CFG.spawn.usd_path)
    before = {str(p.GetPath()) for p in stage.Traverse() if p.IsA(UsdGeom.Gprim)}
    colors = {
        "left_ankle_pitch_link": FAULT_COLOR,
        "left_ankle_roll_link": SENSOR_COLOR,
        "left_knee_link": SENSOR_COLOR,
    }
    assert LinkColors().show(stage, "/World/G1", colors) == ""
    seen = {path: display_color(stage, path) for path in before if "/left_" in path}
    red = {path.split("/")[3] for path, color in seen.items() if color == pytest.approx(FAULT_COLOR)}
    amber = {path.split("/")[3] for path, color in seen.items() if color == pytest.approx(SENSOR_COLOR)}
    assert red == {"left_ankle_pitch_link", "left_ankle_roll_link"}
    assert amber == {"left_knee_link"}


def test_healing_and_switching_off_leave_the_stage_as_it_was(stage):
    untouched, colors = text(stage), LinkColors()
    colors.show(stage, ROBOT, {"FL_calf": RED, "FR_hip": BLUE})
    both = text(stage)
    colors.show(stage, ROBOT, {"FR_hip": BLUE})
    assert display_color(stage, f"{ROBOT}/FR_hip/collision_0") == BLUE
    assert text(stage) != both
    colors.show(stage, ROBOT, {})
    assert text(stage) == untouched
    colors.show(stage, f"{ENVS[0]}/Robot", {"FL_calf": RED})
    assert display_color(stage, f"{ENVS[0]}/Robot/FL_calf/visual_0") == RED
    colors.restore()
    assert text(stage) == untouched
    assert list(stage.GetSessionLayer().subLayerPaths) == []
    assert stage.GetSessionLayer().empty
    colors.restore()  # once more does no harm


def test_no_prim_is_recomposed(stage):
    """PhysX would parse a recomposed rigid body anew, in the middle of the simulation."""
    recomposed, notices, colors = [], [], LinkColors()

    def listen(notice, _):
        notices.append(notice)
        recomposed.extend(path for path in notice.GetResyncedPaths() if path.IsPrimPath())

    listener = Tf.Notice.Register(Usd.Notice.ObjectsChanged, listen, stage)
    colors.show(stage, ROBOT, {"FL_calf": RED})
    written = len(notices)
    colors.show(stage, ROBOT, {"FL_calf": RED})
    assert len(notices) == written > 0  # the same colors again write nothing
    colors.show(stage, ROBOT, {"FL_calf": BLUE})
    colors.show(stage, ROBOT, {})
    colors.show(stage, ROBOT, {"FL_calf": RED})
    colors.restore()
    listener.Revoke()
    assert recomposed == []


def test_materials_and_colors_by_vertex_give_way_and_come_back_and_links_below_a_link_keep_their_own_color():
    stage = Usd.Stage.CreateInMemory()
    link(stage, "/Robot/thigh")
    link(stage, "/Robot/thigh/shin")
    UsdGeom.Cube.Define(stage, "/Robot/thigh/shin/shape").CreateDisplayColorAttr([GRAY])
    primvar = UsdGeom.Mesh.Define(stage, "/Robot/thigh/mesh").CreateDisplayColorPrimvar(UsdGeom.Tokens.vertex)
    primvar.Set(Vt.Vec3fArray([Gf.Vec3f(0.1), Gf.Vec3f(0.2)]))
    primvar.SetIndices(Vt.IntArray([0, 1, 1, 0]))
    painted = UsdGeom.Mesh.Define(stage, "/Robot/thigh/painted")
    UsdShade.MaterialBindingAPI.Apply(painted.GetPrim()).Bind(material(stage, "/Robot/Looks/paint"))
    untouched, colors = text(stage), LinkColors()
    assert colors.show(stage, "/Robot", {"thigh": RED}) == ""
    assert bound_color(stage, "/Robot/thigh/painted") == display_color(stage, "/Robot/thigh/mesh") == RED
    assert primvar.GetInterpolation() == UsdGeom.Tokens.constant
    assert display_color(stage, "/Robot/thigh/shin/shape") == GRAY
    colors.restore()
    assert text(stage) == untouched


@pytest.mark.parametrize("case", ["instance", "shared", "collection", "no shape", "no link"])
def test_links_that_cannot_be_colored_are_named(case):
    stage = Usd.Stage.CreateInMemory()
    stage.DefinePrim("/Robot", "Xform")
    if case != "no link":
        shin = link(stage, "/Robot/shin")
    if case == "instance":
        UsdGeom.Cube.Define(stage, "/Prototype/cube")
        visuals = stage.DefinePrim("/Robot/shin/visuals")
        visuals.GetReferences().AddInternalReference("/Prototype")
        visuals.SetInstanceable(True)
    elif case in ("shared", "collection"):
        cube = UsdGeom.Cube.Define(stage, "/Robot/shin/cube")
        paint = material(stage, "/Robot/Looks/paint")
        if case == "shared":  # by all links: with another target, all of them would turn red
            UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath("/Robot")).Bind(paint)
        else:
            some = Usd.CollectionAPI.Apply(shin, "some")
            some.IncludePath(cube.GetPath())
            UsdShade.MaterialBindingAPI.Apply(shin).Bind(some, paint, "some")
    untouched = text(stage)
    colors = LinkColors()
    note = colors.show(stage, "/Robot", {"shin": RED})
    assert note.startswith("no colors for shin: ")
    assert colors.show(stage, "/Robot", {"shin": RED}) == note  # as long as it holds
    assert text(stage) == untouched


def test_stages_come_and_go(stage):
    colors, other = LinkColors(), Usd.Stage.CreateInMemory()
    untouched = text(stage)
    colors.show(None, "", {})
    colors.show(stage, ROBOT, {"FL_calf": RED})
    colors.show(other, ROBOT, {})
    assert text(stage) == untouched
    colors.show(stage, ROBOT, {"FL_calf": RED})
    colors.forget()
    colors.restore()
    assert stage.GetSessionLayer().subLayerPaths  # a closing stage takes its layers along
    assert isinstance(Sdf.Layer.Find(stage.GetSessionLayer().subLayerPaths[0]), Sdf.Layer)


@pytest.mark.parametrize(
    ("prim_path", "expected"), [("/World/envs/env_[^/]+/Robot", ROBOT), ("/World/Robot", "/World/Robot")]
)
def test_robot_paths_follow_the_scene(prim_path, expected):
    class Scene(dict):
        env_regex_ns = "/World/envs/env_[^/]+"
        env_prim_paths = list(ENVS)

    term = SimpleNamespace(func=SimpleNamespace(asset_name="dog"))
    events = SimpleNamespace(active_terms={"interval": ["faults"]}, get_term_cfg=lambda name: term)
    scene = Scene(dog=SimpleNamespace(cfg=SimpleNamespace(prim_path=prim_path)))
    assert robot_path(SimpleNamespace(scene=scene, event_manager=events), 1) == expected
