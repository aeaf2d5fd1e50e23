# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The robot in the page: Isaac Lab's viser visualizer, floor and sky, a camera that follows, faulty links in color."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import newton
import numpy as np
from isaaclab_visualizers.viser import ViserVisualizerCfg

from umc.mdp import fault_state
from umc.rendering.camera import NO_BODY, FaultPainter
from umc.rendering.colors import Color, rgb
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

Point = tuple[float, float, float]
"""Position [m]."""

CAMERA_DIRECTION = (0.70, -0.70, 0.38)
"""From the robot towards the camera of a new page: ahead of it, to its right, above."""

CAMERA_BASE, CAMERA_PER_HEIGHT = 0.5, 2.8
"""Distance of this camera [m]: the base, and more for each meter that the robot is high."""

NARROW, LOWERED = 0.6, 0.22
"""Width over height of a page, such as a telephone's, whose lower half is covered by controls, and how far the camera
is moved down there, as a part of its distance."""

FIELD_OF_VIEW = math.radians(45.0)
"""Vertical field of view of this camera [rad]."""

FLOOR_COLOR: Color = (0.80, 0.82, 0.84)
LINE_COLOR: Color = (0.68, 0.71, 0.74)
"""Colors of the floor, and of its lines."""

LINE_SPACING, BELOW = 1.0, 0.01
"""Distance between lines of the floor, and depth of the floor below ground that is no plane [m]."""

HORIZON, HORIZON_SHARPNESS = 40.0, 0.35
"""Distance at which the floor ends [m], and how suddenly; 1 lets it fade all the way."""

SKY_TOP, SKY_BOTTOM = (0.55, 0.72, 0.90), (0.90, 0.94, 0.97)
"""Colors of the sky at the top of the page, and from its middle downwards."""


def visualizer_cfg(host: str, port: int) -> ViserVisualizerCfg:
    """Create Isaac Lab's visualizer at an address and the first free port from ``port`` on, without its own plots."""
    address = "127.0.0.1" if host == "localhost" else host
    return ViserVisualizerCfg(bind_address=address, port=port, verbose=False, enable_live_plots=False)


def view(height: float, aspect: float = 1.0) -> tuple[Point, Point]:
    """Return position and target of a new page's camera [m] for a trunk's start height [m], robot at the origin.

    ``aspect`` is the page's width over its height: the camera of a narrow page stands farther away.
    """
    direction = np.asarray(CAMERA_DIRECTION) / np.linalg.norm(CAMERA_DIRECTION)
    distance = (CAMERA_BASE + CAMERA_PER_HEIGHT * height) / min(aspect, 1.0)
    target = np.array([0.0, 0.0, 0.5 * height - (LOWERED * distance if aspect < NARROW else 0.0)])
    eye = target + distance * direction
    return tuple(eye.tolist()), tuple(target.tolist())


def floor_height(model: Any) -> float:
    """Return the height of a Newton model's ground plane, or one just below the lowest point of other ground [m]."""
    fixed = model.shape_body.numpy() == NO_BODY
    plane = model.shape_type.numpy() == int(newton.GeoType.PLANE)
    height = model.shape_transform.numpy()[:, 2]
    low = np.where(plane, height, height + model.shape_collision_aabb_lower.numpy()[:, 2] - BELOW)[fixed]
    return float(low.min()) if len(low) else 0.0


def sky() -> np.ndarray:
    """Draw the sky, which fills the page behind everything else. Shape is (height, width, 3)."""
    share = np.clip(np.linspace(0.0, 2.0, 256), 0.0, 1.0)[:, None, None]
    picture = (1.0 - share) * np.asarray(SKY_TOP) + share * np.asarray(SKY_BOTTOM)
    return np.round(255 * np.broadcast_to(picture, (256, 4, 3))).astype(np.uint8)


class Scene:
    """The 3D part of the page of an environment with :func:`visualizer_cfg`; UmcError if that did not start."""

    def __init__(self, env: ManagerBasedRLEnv) -> None:
        self._env = env
        self._robot: Any = env.scene["robot"]
        simulation: Any = env.sim
        found = [one for one in simulation.visualizers if isinstance(one.cfg, ViserVisualizerCfg)]
        if not found:
            raise UmcError("Isaac Lab's viser visualizer did not start; its log lines above say why")
        self._visualizer: Any = found[0]
        self._viewer: Any = self._visualizer._viewer
        self.server: Any = self._viewer._server
        """The page's viser server; a private attribute of Isaac Lab 3.0."""
        model = self._visualizer.backend.model
        self.painter = FaultPainter(model, fault_state(env), FLOOR_COLOR)
        """Colors links by their faults."""
        self.server.scene.set_background_image(sky(), format="png")
        self._floor = self._add_floor(floor_height(model))
        self._height = float(self._robot.cfg.init_state.pos[2])
        camera = self.server.initial_camera
        camera.fov = FIELD_OF_VIEW
        camera.position, camera.look_at = view(self._height)
        self._visualizer._pending_camera_pose = None  # Isaac Lab's own, for the first page
        self.server.on_client_connect(self._turn_camera)

    def _add_floor(self, height: float) -> Any:
        line, plane = rgb(LINE_COLOR), rgb(FLOOR_COLOR)
        return self.server.scene.add_grid(
            "/floor",
            position=(0.0, 0.0, height),
            infinite_grid=True,
            cell_size=LINE_SPACING,
            section_size=LINE_SPACING,
            cell_color=line,
            section_color=line,
            plane_color=plane,
            plane_opacity=1.0,
            shadow_opacity=0.3,
            fade_distance=HORIZON,
            fade_strength=HORIZON_SHARPNESS,
        )

    def _turn_camera(self, client: Any) -> None:
        """Point the camera of a page that has just been opened, by the page's shape."""
        client.camera.position, client.camera.look_at = view(self._height, float(client.camera.aspect))

    def url(self, host: str) -> str:
        """Return the address of the page on this machine for the host that was asked for."""
        here = "localhost" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        return f"http://{here}:{self.server.get_port()}"

    def check(self) -> None:
        """Raise UmcError if Isaac Lab has removed the visualizer, which it does after a failure."""
        simulation: Any = self._env.sim
        if self._visualizer not in simulation.visualizers:
            raise UmcError("Isaac Lab's viser visualizer stopped; its log lines above say why")

    def follow(self, env_id: int) -> None:
        """Keep the robot of an env where the cameras look: the world moves below them, since they belong to the user.

        Positions are sent as they are seen from the robot, so that a page that draws late does not lose it.
        """
        x, y, _ = self._robot.data.root_pos_w.torch[env_id].tolist()
        self._viewer.set_layer_transform(self._viewer.layer.layer_id, (-x, -y, 0.0))
        self._floor.position = (-x % LINE_SPACING, -y % LINE_SPACING, self._floor.position[2])
