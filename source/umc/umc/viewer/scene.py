# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The robot in the page: Isaac Lab's viser visualizer, a camera that follows, links colored by their faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from isaaclab_visualizers.viser import ViserVisualizerCfg

from umc.mdp import fault_state
from umc.rendering.camera import FaultPainter
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

Point = tuple[float, float, float]
"""Position [m]."""

WORLD = "/model"
"""Node of the page that Newton's viewer adds a model to."""

CAMERA_DIRECTION = (0.70, -0.70, 0.38)
"""From the robot towards the camera of a new page: ahead of it, to its right, above."""

CAMERA_BASE, CAMERA_PER_HEIGHT = 0.5, 2.8
"""Distance of this camera [m]: the base, and more for each meter that the robot is high."""


def visualizer_cfg(host: str, port: int, height: float) -> ViserVisualizerCfg:
    """Create Isaac Lab's visualizer at an address and the first free port from ``port`` on, without its own plots.

    ``height`` is that of the trunk at the start [m].
    """
    address = "127.0.0.1" if host == "localhost" else host
    eye, target = view(height)
    return ViserVisualizerCfg(
        bind_address=address, port=port, eye=eye, lookat=target, verbose=False, enable_live_plots=False
    )


def view(height: float) -> tuple[Point, Point]:
    """Return position and target of a new page's camera [m] for a trunk's start height [m], robot at the origin."""
    direction = np.asarray(CAMERA_DIRECTION) / np.linalg.norm(CAMERA_DIRECTION)
    target = np.array([0.0, 0.0, 0.5 * height])
    eye = target + (CAMERA_BASE + CAMERA_PER_HEIGHT * height) * direction
    return tuple(eye.tolist()), tuple(target.tolist())


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
        self.server: Any = self._visualizer._viewer._server
        """The page's viser server; a private attribute of Isaac Lab 3.0."""
        self.painter = FaultPainter(self._visualizer.backend.model, fault_state(env))
        """Colors links by their faults."""
        # the simulated world is moved below the camera, which belongs to the user
        self._world = self.server.scene.add_frame(WORLD, show_axes=False)
        camera = self.server.initial_camera  # of pages that are opened later; Isaac Lab turns the first one
        camera.position, camera.look_at = view(float(self._robot.cfg.init_state.pos[2]))

    def url(self, host: str) -> str:
        """Return the address of the page on this machine for the host that was asked for."""
        return f"http://{'localhost' if host == '0.0.0.0' else host}:{self.server.get_port()}"

    def check(self) -> None:
        """Raise UmcError if Isaac Lab has removed the visualizer, which it does after a failure."""
        simulation: Any = self._env.sim
        if self._visualizer not in simulation.visualizers:
            raise UmcError("Isaac Lab's viser visualizer stopped; its log lines above say why")

    def follow(self, env_id: int) -> None:
        """Keep the robot of an env where the cameras look."""
        x, y, _ = self._robot.data.root_pos_w.torch[env_id].tolist()
        self._world.position = (-x, -y, 0.0)
