# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The camera in the simulation: drawn by Newton's Warp renderer, so that neither screen nor GPU is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import isaaclab.sim as sim_utils
import numpy as np
import torch
import warp as wp
from isaaclab.sensors import CameraCfg
from isaaclab.sim import SimulationContext
from isaaclab_newton.renderers import NewtonWarpRendererCfg

from umc.faults import FaultState
from umc.mdp import height_above_ground
from umc.rendering.colors import FAULT_COLOR, SENSOR_COLOR
from umc.rendering.writers import FOCAL_LENGTH, HORIZONTAL_APERTURE, Frame, View, paint_ground

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

CAMERA = "film_camera"
"""Name of the camera in the scene."""

SKY_COLOR = (0.86, 0.91, 0.96)
FAR_CLIP = 60.0
"""Ground ends here [m]."""

VIEW_DIRECTION = (0.62, -0.74, 0.26)
"""From the robot towards the camera in the robot's frame: a little ahead of it, to its right, above."""

VIEW_BASE, VIEW_PER_HEIGHT = 0.6, 3.4
"""Distance of the camera [m]: the base, and more for each metre that the robot is high."""

LOOK_AT = 0.75
"""Height that the camera looks at, as a part of the trunk's start height [-]."""

NO_BODY = -1
"""What Newton calls the body of a shape that does not move."""

SMOOTHING = 0.15
"""Weight of the newest position in the camera's path [-]."""


def camera_cfg(width: int, height: int, albedo: bool = False) -> CameraCfg:
    """A camera that is moved by hand.

    Args:
        width: Width of a frame [px].
        height: Height of a frame [px].
        albedo: Whether it sees the colours of surfaces, too, as they are without light.

    Returns:
        The cfg, to be put into a scene of one env.
    """
    return CameraCfg(
        prim_path="{ENV_REGEX_NS}/FilmCamera",
        update_period=0.0,
        width=width,
        height=height,
        data_types=["rgb", "distance_to_image_plane", *(["albedo"] if albedo else [])],
        background_color=SKY_COLOR,
        spawn=sim_utils.PinholeCameraCfg(
            focal_length=FOCAL_LENGTH, horizontal_aperture=HORIZONTAL_APERTURE, clipping_range=(0.05, FAR_CLIP)
        ),
        renderer_cfg=NewtonWarpRendererCfg(enable_shadows=True),
    )


class Cinema:
    """Follows env 0 with the camera and paints broken joints."""

    def __init__(self, env: ManagerBasedRLEnv, direction: tuple[float, float, float] = VIEW_DIRECTION) -> None:
        """Points the camera at the robot; call it right after a reset.

        Args:
            env: An environment whose scene has :func:`camera_cfg`.
            direction: From the robot towards the camera, in the robot's frame.
        """
        self._env = env
        self._camera: Any = env.scene[CAMERA]
        self._robot: Any = env.scene["robot"]
        self._device = env.device
        self._direction = np.asarray(direction) / np.linalg.norm(direction)
        self._parts: dict[str, torch.Tensor] | None = None
        self._colors: torch.Tensor | None = None
        self.restart()

    def restart(self) -> None:
        """Points the camera at the robot where it stands now."""
        start = float(self._robot.cfg.init_state.pos[2])
        self._look_at_height = LOOK_AT * start
        heading = float(self._robot.data.heading_w.torch[0])
        turn = np.array([[np.cos(heading), -np.sin(heading), 0], [np.sin(heading), np.cos(heading), 0], [0, 0, 1]])
        self._offset = (VIEW_BASE + VIEW_PER_HEIGHT * start) * turn @ self._direction
        self._focus = self._trunk()

    def shoot(self, state: FaultState, rings: tuple[float, ...] = (), center: tuple[float, ...] = (0, 0)) -> Frame:
        """Takes a frame.

        Args:
            state: Which joints are broken.
            rings: Radii of distance rings on the ground [m].
            center: Where they are centred [m].

        Returns:
            The frame.
        """
        self.follow()
        view = self._point(state)
        depth = self._seen("distance_to_image_plane")[..., 0]
        return paint_ground(self._seen("rgb")[..., :3], depth, view, rings, center)

    def follow(self) -> None:
        """Moves the camera a little after the robot; to be called at even intervals."""
        self._focus += SMOOTHING * (self._trunk() - self._focus)

    def _point(self, state: FaultState) -> View:
        """Sets the camera up and paints broken joints; what is seen next is the new view."""
        view = View(self._focus + self._offset, self._focus.copy())
        eye, target = (torch.tensor(point, dtype=torch.float32)[None] for point in (view.eye, view.target))
        self._camera.set_world_poses_from_view(eye.to(self._device), target.to(self._device))
        self._paint(state)
        return view

    def _seen(self, name: str) -> np.ndarray:
        """One of the camera's images."""
        return self._camera.data.output[name].torch[0].cpu().numpy()

    def _trunk(self) -> np.ndarray:
        """Horizontal position of the trunk, at the height above the ground that the camera looks at [m]."""
        x, y, z = self._robot.data.root_pos_w.torch[0].tolist()
        ground = z - float(height_above_ground(self._env)[0])
        return np.array([x, y, ground + self._look_at_height])

    def _paint(self, state: FaultState) -> None:
        """Gives the link behind each joint its colour."""
        if self._parts is None:
            # the renderer has a Newton model of the scene whichever engine simulates
            simulation: Any = SimulationContext.instance()
            renderer = simulation.get_or_create_backend(self._camera.cfg.renderer_cfg)
            model = renderer.backend.model
            self._all = wp.to_torch(model.shape_color)
            self._colors = self._all.clone()
            self._dye(self._colors, torch.from_numpy(model.shape_body.numpy() == NO_BODY))
            self._parts = _shapes_of_joints(model, state.joint_names, self._device)
        assert self._colors is not None
        self._all.copy_(self._colors)
        broken = state.broken[0].tolist()
        dead = state.joint_mask[0].tolist()
        for number, name in enumerate(state.joint_names):
            if broken[number] or dead[number]:
                color = FAULT_COLOR if broken[number] else SENSOR_COLOR
                self._all[self._parts[name]] = torch.tensor(color, device=self._all.device)

    def _dye(self, colors: torch.Tensor, fixed: torch.Tensor) -> None:
        """May change the colours that healthy things have.

        Args:
            colors: Red, green, blue of every shape, changed in place. Shape is (num_shapes, 3).
            fixed: Shapes that belong to no body: the ground. Shape is (num_shapes,).
        """


def _shapes_of_joints(model: Any, joint_names: tuple[str, ...], device: str) -> dict[str, torch.Tensor]:
    """Rows of the shapes of the link that each joint moves."""
    moved = dict(zip((label.rpartition("/")[2] for label in model.joint_label), model.joint_child.numpy(), strict=True))
    body_of_shape = model.shape_body.numpy()
    return {
        name: torch.tensor((body_of_shape == moved[name]).nonzero()[0], dtype=torch.long, device=device)
        for name in joint_names
    }
