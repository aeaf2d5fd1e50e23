# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Color links of a running scene on its USD stage, and restore it; plain USD, no Kit.

All colors are in a layer of their own below the session layer: they override the scene, are never saved with it, and
disappear with the layer. Only values of attributes and targets of relationships change: a prim that is recomposed (a
new binding API, another reference) would make PhysX parse a running robot again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade, Vt

from umc.rendering.colors import FAULT_COLOR, moving_links

if TYPE_CHECKING:
    from umc.kit.panel import FaultPanel
    from umc.rendering.colors import Color

LAYER = "umc_fault_colors"
"""Name of the layer."""

MATERIALS = Sdf.Path("/UmcFaultColors")
"""Materials of colored links, in that layer only."""


class LinkColors:
    """Colors of the links of one env at a time."""

    def __init__(self) -> None:
        self._stage: Usd.Stage | None = None
        self._layer: Sdf.Layer | None = None
        self._painted: tuple[Any, ...] = ()
        self._note = ""

    def follow(self, stage: Usd.Stage | None, panel: FaultPanel) -> str:
        """Color the links behind the faulty joints of a panel; return why some have no color, empty if all have."""
        colors = panel.link_colors
        return self.show(stage, robot_path(panel.env, panel.env_id) if colors else "", colors)

    def show(self, stage: Usd.Stage | None, robot: str, colors: Mapping[str, Color]) -> str:
        """Color links by name, restore all others, and return why some have no color."""
        if stage != self._stage:
            self.restore()
            self._stage = stage
        wanted = (robot, tuple(sorted(colors.items())))
        if wanted != self._painted:
            self._painted = wanted
            self._note = self._paint(robot, colors)
        return self._note

    def restore(self) -> None:
        """Remove the layer: the stage is as before."""
        if self._layer is not None and self._stage:
            # Emptied first: what USD recomposes when a layer goes depends on what is in it.
            self._layer.Clear()
            self._stage.GetSessionLayer().subLayerPaths.remove(self._layer.identifier)
        self.forget()

    def forget(self) -> None:
        """Drop a stage that is being closed, and its layer."""
        self._stage, self._layer, self._painted, self._note = None, None, (), ""

    def _paint(self, robot: str, colors: Mapping[str, Color]) -> str:
        if not self._stage:
            return ""
        if self._layer is not None:
            self._layer.Clear()
        if not colors:
            return ""
        if not self._stage.GetPrimAtPath(robot):
            return f"no colors: the stage has no prim {robot}"
        links = links_of(self._stage, robot)
        children = _children(self._stage, robot, links)

        def shapes_of(name: str) -> list[tuple[Usd.Prim, Usd.Relationship | None]]:
            moved = moving_links(name, children, lambda one: _radii(links[one]))
            return [part for one in moved for part in _colorable_shapes(links[one])]

        # red last: two joints may color the same link
        names = sorted(colors, key=lambda name: colors[name] == FAULT_COLOR)
        # read before the first color is written: it would be found as the material
        shapes = {name: shapes_of(name) if name in links else [] for name in names}
        if self._layer is None:
            self._layer = Sdf.Layer.CreateAnonymous(LAYER)
            self._stage.GetSessionLayer().subLayerPaths.insert(0, self._layer.identifier)
        with Usd.EditContext(self._stage, self._layer):
            for name, parts in shapes.items():
                for shape, binding in parts:
                    self._color(shape, colors[name], binding)
        plain = [name for name, parts in shapes.items() if not parts]
        return f"no colors for {', '.join(plain)}: no shapes, or out of reach in instances" if plain else ""

    def _color(self, shape: Usd.Prim, color: Color, binding: Usd.Relationship | None) -> None:
        """Set a shape's own color, which renderers show without a material, and its material where one is bound."""
        primvar: Any = UsdGeom.Gprim(shape).GetDisplayColorPrimvar()
        primvar.Set(Vt.Vec3fArray([Gf.Vec3f(*color)]))
        primvar.SetInterpolation(UsdGeom.Tokens.constant)
        if primvar.IsIndexed():
            primvar.BlockIndices()
        if binding is not None:
            binding.SetTargets([self._material(color)])

    def _material(self, color: Color) -> Sdf.Path:
        """Return the path of a plain material of a color."""
        path: Any = MATERIALS.AppendChild("color_" + "".join(f"{round(255 * value):02x}" for value in color))
        if not self._stage.GetPrimAtPath(path):  # pyright: ignore[reportOptionalMemberAccess]
            material: Any = UsdShade.Material.Define(self._stage, path)
            shader: Any = UsdShade.Shader.Define(self._stage, path.AppendChild("Shader"))
            shader.CreateIdAttr("UsdPreviewSurface")
            shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f).Set(Gf.Vec3f(*color))
            material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
        return path


def robot_path(env: Any, env_id: int) -> str:
    """Return the path of the robot of an env on the stage."""
    from umc.mdp.fault_terms import fault_term  # needs Isaac Lab, which the environment has loaded

    scene = env.scene
    path = scene[fault_term(env).asset_name].cfg.prim_path
    below = path.removeprefix(scene.env_regex_ns)
    return path if below == path else scene.env_prim_paths[env_id] + below


def links_of(stage: Usd.Stage, robot: str) -> dict[str, Usd.Prim]:
    """Return the prims of a robot's rigid bodies by name."""
    below = Usd.PrimRange(stage.GetPrimAtPath(robot), Usd.TraverseInstanceProxies())
    return {prim.GetName(): prim for prim in below if prim.HasAPI(UsdPhysics.RigidBodyAPI)}


def _children(stage: Usd.Stage, robot: str, links: Mapping[str, Usd.Prim]) -> dict[str, list[str]]:
    """Return the names of the links that joints hang on each link of a robot."""
    children: dict[str, list[str]] = {}
    for prim in Usd.PrimRange(stage.GetPrimAtPath(robot), Usd.TraverseInstanceProxies()):
        joint: Any = UsdPhysics.Joint(prim)
        parent, child = (joint.GetBody0Rel().GetTargets(), joint.GetBody1Rel().GetTargets()) if joint else ((), ())
        if parent and child and child[0].name in links:
            children.setdefault(parent[0].name, []).append(child[0].name)
    return children


def _radii(link: Usd.Prim) -> list[float]:
    """Return half the diagonals of a link's shapes, as far as they are rendered [m]."""
    cache: Any = UsdGeom.BBoxCache(Usd.TimeCode.Default(), [UsdGeom.Tokens.default_, UsdGeom.Tokens.render])
    bounds = [cache.ComputeRelativeBound(shape, link).ComputeAlignedRange() for shape in _shapes(link)]
    return [0.5 * bound.GetSize().GetLength() for bound in bounds if not bound.IsEmpty()]


def _colorable_shapes(link: Usd.Prim) -> list[tuple[Usd.Prim, Usd.Relationship | None]]:
    """Return the shapes of a link that can be colored, with the relationship that binds their material, if any.

    Shapes inside instances, and materials that other links or a collection share, cannot be colored.
    """
    shapes = []
    for shape in _shapes(link):
        found: Any = UsdShade.MaterialBindingAPI(shape).ComputeBoundMaterial(UsdShade.Tokens.full)
        material, binding = found
        own = bool(material) and len(binding.GetTargets()) == 1  # a collection's binding names the collection too
        own = own and binding.GetPath().HasPrefix(link.GetPath())
        if not shape.IsInstanceProxy() and (own or not material):
            shapes.append((shape, binding if own else None))
    return shapes


def _shapes(link: Usd.Prim) -> Iterator[Usd.Prim]:
    """Yield the shapes of a link, without those of links nested below it."""
    below = iter(Usd.PrimRange(link, Usd.TraverseInstanceProxies()))
    for prim in below:
        if prim != link and prim.HasAPI(UsdPhysics.RigidBodyAPI):
            below.PruneChildren()
        elif prim.IsA(UsdGeom.Gprim):
            yield prim
