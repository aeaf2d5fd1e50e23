# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Camera that follows a robot, drawn by Newton's Warp renderer, so that neither screen nor GPU is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import isaaclab.sim as sim_utils
import newton
import numpy as np
import torch
import warp as wp
from isaaclab.sensors import CameraCfg
from isaaclab.sim import SimulationContext
from isaaclab_newton.renderers import NewtonWarpRendererCfg, newton_warp_renderer
from numpy.typing import NDArray

from umc.faults import FaultState
from umc.faults.kinds import ImuKind
from umc.mdp import height_above_ground
from umc.rendering.colors import COMMAND_COLOR, FAULT_COLOR, SENSOR_COLOR, color_of, moving_links
from umc.rendering.ground import FOCAL_LENGTH, HORIZONTAL_APERTURE, Track, View, paint_ground
from umc.rendering.writers import Frame

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

CAMERA = "film_camera"
"""Name of the camera in the scene."""

SKY_COLOR = (0.86, 0.91, 0.96)
FAR_CLIP = 60.0
"""The ground ends here [m]."""

DIRECTIONS = {"side": (0.0, -1.0, 0.2), "front": (0.62, -0.74, 0.26)}
"""From the robot towards the camera in the robot's frame; from the side it walks to the right of the picture."""

LIGHT = (-0.35, 0.6, -0.7)
"""Direction in which the light travels, in the robot's frame: it falls on the side that the camera sees."""

VIEW_BASE, VIEW_PER_HEIGHT = 0.6, 3.4
"""Distance of the camera [m]: the base, and more for each meter that the robot is high."""

LOOK_AT = 0.75
"""Height that the camera looks at, as a part of the trunk's start height [-]."""

SMOOTHING = 0.15
"""Weight of the newest position in the camera's path [-]."""

GROUND_COLOR = (0.745, 0.780, 0.760)
"""Marks the pixels of the ground, on rough ground too: no robot has this green."""

TOLERANCE, NO_BODY = 2, -1
"""Difference of colors that are the same, of 255, and Newton's body of a shape that does not move."""


def camera_cfg(width: int, height: int) -> CameraCfg:
    """Create a camera with frames of a width and height [px], for a scene of one env."""
    _ignore_compiler_warning()
    return CameraCfg(
        prim_path="{ENV_REGEX_NS}/FilmCamera",
        update_period=0.0,
        width=width,
        height=height,
        data_types=["rgb", "distance_to_image_plane", "albedo"],
        background_color=SKY_COLOR,
        spawn=sim_utils.PinholeCameraCfg(
            focal_length=FOCAL_LENGTH, horizontal_aperture=HORIZONTAL_APERTURE, clipping_range=(0.05, FAR_CLIP)
        ),
        # a CUDA graph would keep the first light
        renderer_cfg=NewtonWarpRendererCfg(enable_shadows=True, use_cuda_graph=False),
    )


def _ignore_compiler_warning() -> None:
    """Compile Isaac Lab's renderer without the C++ compiler's remark about ``wp.uint32(0xFFFFFFFF)`` in its source."""
    flags = "-march=native" if wp.config.cpu_compiler_flags is None else wp.config.cpu_compiler_flags
    options = {"cpu_compiler_flags": f"{flags} -Wno-constant-conversion"}
    wp.set_module_options(options, module=newton_warp_renderer)


_HEALTHY: WeakKeyDictionary[Any, torch.Tensor] = WeakKeyDictionary()
"""Colors of models before they were painted: a second painter finds those of the first one's last picture."""


class FaultPainter:
    """Colors of the links behind faulty joints in a Newton model, as :func:`umc.rendering.colors.color_of` gives them.

    A fault of the IMU colors none, though plans give it joints.
    ``ground_color`` is the new color of shapes without a body.
    """

    def __init__(self, model: Any, state: FaultState, ground_color: tuple[float, float, float] | None = None) -> None:
        self._state = state
        self._colors: torch.Tensor = wp.to_torch(model.shape_color)
        self._healthy = _HEALTHY.setdefault(model, self._colors.clone()).clone()
        body_of_shape = torch.from_numpy(model.shape_body.numpy())
        if ground_color is not None:
            ground = (body_of_shape == NO_BODY).to(self._colors.device)
            self._healthy[ground] = torch.tensor(ground_color, device=self._colors.device)
        self._shapes = shapes_of_joints(model, state.joint_names)

    def paint(self) -> None:
        """Color all links by the faults of now."""
        self._colors.copy_(self._healthy)
        colors = [None if isinstance(kind, ImuKind) else color_of([kind.name]) for kind in self._state.kinds]
        # the worst last: two joints may color the same link
        for color in (COMMAND_COLOR, SENSOR_COLOR, FAULT_COLOR):
            kinds = [number for number, one in enumerate(colors) if one == color]
            for at in map(tuple, self._state.live[:, kinds].any(dim=1).nonzero().tolist()):
                if at in self._shapes:
                    self._colors[self._shapes[at]] = torch.tensor(color, device=self._colors.device)


def shapes_of_joints(model: Any, joint_names: tuple[str, ...]) -> dict[tuple[int, int], torch.Tensor]:
    """Return the rows of the shapes of the links that show each joint, by env and joint index."""
    column = {name: index for index, name in enumerate(joint_names)}
    rows: dict[int, list[int]] = {}
    for row, body in enumerate(model.shape_body.numpy().tolist()):
        rows.setdefault(body, []).append(row)
    radius = model.shape_collision_radius.numpy()
    children: dict[int, list[int]] = {}
    ends = (getattr(model, f"joint_{of}").numpy().tolist() for of in ("world", "parent", "child"))
    joints = list(zip(model.joint_label, *ends, strict=True))
    for _, _, parent, child in joints:
        children.setdefault(parent, []).append(child)

    def shapes(body: int) -> list[int]:
        moved = moving_links(body, children, lambda one: [radius[row] for row in rows.get(one, [])])
        return [row for one in moved for row in rows.get(one, [])]

    return {
        (world, column[name]): torch.tensor(shapes(child), dtype=torch.long)
        for label, world, _, child in joints
        if (name := label.rpartition("/")[2]) in column
    }


def smooth_meshes(model: Any) -> None:
    """Give the robots' meshes in a Newton model normals per vertex, which its USD importer leaves out."""
    for mesh, body in zip(model.shape_source, model.shape_body.numpy(), strict=True):
        if body != NO_BODY and isinstance(mesh, newton.Mesh) and mesh.normals is None:
            # it has no setter, and another mesh would free the geometry that the model points to
            mesh._normals = vertex_normals(mesh.vertices, mesh.indices.reshape(-1, 3))


def vertex_normals(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Return the mean direction of the triangles at each point, weighted by their area. Shape is (points, 3)."""
    a, b, c = (points[triangles[:, corner]] for corner in range(3))
    across = np.cross(b - a, c - a)
    normals = np.zeros_like(points)
    for corner in range(3):
        np.add.at(normals, triangles[:, corner], across)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def is_ground(albedo: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which pixels of an image without light, shape (height, width, 3 or more), have the ground's color."""
    found = np.ones(albedo.shape[:2], dtype=bool)
    for channel, share in enumerate(GROUND_COLOR):
        lowest = np.uint8(round(255 * share) - TOLERANCE)
        found &= albedo[..., channel] - lowest <= 2 * TOLERANCE  # what is darker wraps around
    return found


class FollowCamera:
    """Camera that follows the robot of env 0 and colors its faulty joints; create it right after a reset.

    The scene of the env needs :func:`camera_cfg`; ``view`` is one of :data:`DIRECTIONS`.
    """

    def __init__(self, env: ManagerBasedRLEnv, state: FaultState, view: str = "side") -> None:
        self._env = env
        self._camera: Any = env.scene[CAMERA]
        self._robot: Any = env.scene["robot"]
        self._direction = np.asarray(DIRECTIONS[view]) / np.linalg.norm(DIRECTIONS[view])
        self._light = np.asarray(LIGHT) / np.linalg.norm(LIGHT)
        self._state = state
        self._painter: FaultPainter | None = None
        self.restart()

    def restart(self) -> None:
        """Point the camera at the robot where it stands now, and count meters from there."""
        start = float(self._robot.cfg.init_state.pos[2])
        self._look_at_height = LOOK_AT * start
        heading = float(self._robot.data.heading_w.torch[0])
        turn = np.array([[np.cos(heading), -np.sin(heading), 0], [np.sin(heading), np.cos(heading), 0], [0, 0, 1]])
        self._offset = (VIEW_BASE + VIEW_PER_HEIGHT * start) * turn @ self._direction
        self._light_direction = wp.vec3f(*(turn @ self._light).tolist())
        self._focus = self._trunk()
        self._track = Track(self._focus[:2].copy(), heading)
        self._onset_at: float | None = None

    def mark_fault(self) -> None:
        """Mark the place where the robot is now as that of the fault."""
        self._onset_at = float(self._track.along(self._trunk()))

    def follow(self) -> None:
        """Move the camera a little after the robot; call it at even intervals."""
        self._focus += SMOOTHING * (self._trunk() - self._focus)

    def render(self) -> Frame:
        """Render a frame from where :meth:`follow` has moved the camera."""
        view = View(self._focus + self._offset, self._focus.copy())
        eye, target = (torch.tensor(point, dtype=torch.float32)[None] for point in (view.eye, view.target))
        self._camera.set_world_poses_from_view(eye.to(self._env.device), target.to(self._env.device))
        # the renderer has a Newton model of the scene whichever engine simulates
        simulation: Any = SimulationContext.instance()
        renderer = simulation.get_or_create_backend(self._camera.cfg.renderer_cfg)
        if self._painter is None:
            smooth_meshes(renderer.backend.model)
            renderer.initialize()  # once more: it reads the normals when it starts
            self._painter = FaultPainter(renderer.backend.model, self._state, GROUND_COLOR)
        renderer.newton_sensor.utils.create_default_light(True, self._light_direction)
        self._painter.paint()
        images = {name: image.torch[0].cpu().numpy() for name, image in self._camera.data.output.items()}
        depth, ground = images["distance_to_image_plane"][..., 0], is_ground(images["albedo"])
        points = view.ground_points(depth)
        return paint_ground(images["rgb"][..., :3], depth, points, ground, self._track, self._onset_at)

    def _trunk(self) -> np.ndarray:
        """Position of the trunk [m], at the height above the ground that the camera looks at."""
        x, y, z = self._robot.data.root_pos_w.torch[0].tolist()
        ground = z - float(height_above_ground(self._env)[0])
        return np.array([x, y, ground + self._look_at_height])
