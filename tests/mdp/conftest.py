# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A robot that is not part of UMC."""

import pytest
from pxr import Gf, Usd, UsdGeom, UsdPhysics


@pytest.fixture(scope="session")
def chain_usd(tmp_path_factory) -> str:
    """USD file of a chain of three links that hangs from a fixed base; it holds no engine's own attributes."""
    path = str(tmp_path_factory.mktemp("chain") / "chain.usda")
    stage = Usd.Stage.CreateNew(path)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    root = UsdGeom.Xform.Define(stage, "/chain").GetPrim()
    stage.SetDefaultPrim(root)
    UsdPhysics.ArticulationRootAPI.Apply(root)
    for number in range(4):
        link = UsdGeom.Cube.Define(stage, f"/chain/link_{number}")
        link.CreateSizeAttr(0.05)
        link.AddTranslateOp().Set(Gf.Vec3d(0, 0, -0.2 * number))
        UsdPhysics.RigidBodyAPI.Apply(link.GetPrim())
        mass = UsdPhysics.MassAPI.Apply(link.GetPrim())
        mass.CreateMassAttr(0.5)
        mass.CreateCenterOfMassAttr(Gf.Vec3f(0, 0, -0.1))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(0.002))
        if number == 0:
            UsdPhysics.FixedJoint.Define(stage, "/chain/base").CreateBody1Rel().SetTargets([link.GetPath()])
            continue
        joint = UsdPhysics.RevoluteJoint.Define(stage, f"/chain/joint_{number}")
        joint.CreateAxisAttr("Y")
        joint.CreateBody0Rel().SetTargets([f"/chain/link_{number - 1}"])
        joint.CreateBody1Rel().SetTargets([link.GetPath()])
        joint.CreateLocalPos0Attr(Gf.Vec3f(0, 0, -0.2))
        joint.CreateLowerLimitAttr(-120.0)
        joint.CreateUpperLimitAttr(100.0)
        UsdPhysics.DriveAPI.Apply(joint.GetPrim(), "angular").CreateMaxForceAttr(20.0)
    stage.Save()
    return path
