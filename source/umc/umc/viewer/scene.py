# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The robot in the page: Isaac Lab's viser visualizer, a camera that follows, links coloured by their faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import warp as wp
from isaaclab_visualizers.viser import ViserVisualizerCfg

from umc.mdp import fault_state
from umc.rendering.colors import FAULT_COLOR, SENSOR_COLOR
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

Point = tuple[float, float, float]
"""Position [m]."""

WORLD = "/model"
"""Node of the page below which Newton's viewer puts a model."""

CAMERA_DIRECTION = (0.70, -0.70, 0.38)
"""From the robot towards the camera of a page that is opened: ahead of it, to its right, above."""

CAMERA_BASE, CAMERA_PER_HEIGHT = 0.5, 2.8
"""Distance of this camera [m]: the base, and more for each metre that the robot is high."""


def visualizer_cfg(host: str, port: int, height: float) -> ViserVisualizerCfg:
    """Isaac Lab's visualizer, without its own plots and its own line about where it is.

    Args:
        host: Address that the page is served at.
        port: Port, or the first that is tried.
        height: Height of the trunk at the start [m].

    Returns:
        The cfg.
    """
    address = "127.0.0.1" if host == "localhost" else host
    eye, target = view(height)
    return ViserVisualizerCfg(
        bind_address=address, port=port, eye=eye, lookat=target, verbose=False, enable_live_plots=False
    )


def view(height: float) -> tuple[Point, Point]:
    """Where the camera of a page that is opened stands.

    Args:
        height: Height of the trunk at the start [m].

    Returns:
        Its position and the point that it looks at, from the ground under the robot [m].
    """
    direction = np.asarray(CAMERA_DIRECTION) / np.linalg.norm(CAMERA_DIRECTION)
    target = np.array([0.0, 0.0, 0.5 * height])
    eye = target + (CAMERA_BASE + CAMERA_PER_HEIGHT * height) * direction
    return _point(eye), _point(target)


def _point(values: np.ndarray) -> Point:
    x, y, z = values.tolist()
    return x, y, z


class Scene:
    """The 3D part of the page.

    Args:
        env: An environment that was made with :func:`visualizer_cfg`.

    Raises:
        UmcError: If its visualizer did not start.
    """

    def __init__(self, env: ManagerBasedRLEnv) -> None:
        self._env = env
        self._robot: Any = env.scene["robot"]
        simulation: Any = env.sim
        found = [one for one in simulation.visualizers if isinstance(one.cfg, ViserVisualizerCfg)]
        if not found:
            raise UmcError("Isaac Lab's viser visualizer did not start; its log lines above say why")
        self._visualizer: Any = found[0]
        self.server: Any = self._visualizer._viewer._server
        """The page's viser server; Isaac Lab 3.0 keeps it to itself."""
        model = self._visualizer.backend.model
        self._colors: torch.Tensor = wp.to_torch(model.shape_color)
        self._own_colors = self._colors.clone()
        self._state = fault_state(env)
        self._shapes = shapes_of_joints(model, self._state.joint_names)
        # all that is simulated stands below this node: the world is moved under the camera, which is left to who looks
        self._world = self.server.scene.add_frame(WORLD, show_axes=False)
        camera = self.server.initial_camera  # of pages that are opened later; Isaac Lab turns the first one
        camera.position, camera.look_at = view(float(self._robot.cfg.init_state.pos[2]))

    def url(self, host: str) -> str:
        """Where the page is.

        Args:
            host: Address that was asked for.

        Returns:
            What to type into a browser of this machine.
        """
        return f"http://{'localhost' if host == '0.0.0.0' else host}:{self.server.get_port()}"

    def check(self) -> None:
        """Notices that the visualizer has gone: Isaac Lab takes one out that failed, and goes on.

        Raises:
            UmcError: If it has.
        """
        simulation: Any = self._env.sim
        if self._visualizer not in simulation.visualizers:
            raise UmcError("Isaac Lab's viser visualizer stopped; its log lines above say why")

    def follow(self, env_id: int) -> None:
        """Keeps a robot where the cameras look.

        Args:
            env_id: Its env.
        """
        x, y, _ = self._robot.data.root_pos_w.torch[env_id].tolist()
        self._world.position = (-x, -y, 0.0)

    def paint(self) -> None:
        """Gives the link behind each joint its colour: red where the joint is broken, amber where it is misheard."""
        self._colors.copy_(self._own_colors)
        broken, live = self._state.broken.tolist(), self._state.live.any(dim=1).tolist()
        for (env, joint), rows in self._shapes.items():
            if live[env][joint]:
                color = FAULT_COLOR if broken[env][joint] else SENSOR_COLOR
                self._colors[rows] = torch.tensor(color, device=self._colors.device)


def shapes_of_joints(model: Any, joint_names: tuple[str, ...]) -> dict[tuple[int, int], torch.Tensor]:
    """Rows of the shapes of the link that each joint moves.

    Args:
        model: Newton's model of all envs.
        joint_names: Joints.

    Returns:
        Rows by env and number of the joint.
    """
    column = {name: number for number, name in enumerate(joint_names)}
    body_of_shape = torch.from_numpy(model.shape_body.numpy())
    found = {}
    for label, world, child in zip(
        model.joint_label, model.joint_world.numpy(), model.joint_child.numpy(), strict=True
    ):
        joint = column.get(label.rpartition("/")[2])
        if joint is not None:
            found[int(world), joint] = (body_of_shape == int(child)).nonzero().squeeze(1)
    return found
