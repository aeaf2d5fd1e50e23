# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A camera that follows the robot from the side, over ground that is marked every metre."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from umc.faults import FaultState
from umc.rendering.camera import Cinema
from umc.rendering.ground import Way, paint_metres
from umc.rendering.writers import Frame

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

SIDE_DIRECTION = (0.0, -1.0, 0.2)
"""From the robot towards the camera in the robot's frame: to its right and a little above, so that it walks to the
right of the picture."""

GROUND_COLOR = (0.745, 0.780, 0.760)
"""Of the ground; no robot has this green, which tells the ground's pixels from all others, on rough ground too."""

TOLERANCE = 2
"""Difference of colours that are the same, of 255."""


class SideCinema(Cinema):
    """Follows env 0 from the side."""

    def __init__(self, env: ManagerBasedRLEnv) -> None:
        """Points the camera at the robot; call it right after a reset.

        Args:
            env: An environment whose scene has :func:`umc.rendering.camera.camera_cfg` with albedo.
        """
        super().__init__(env, SIDE_DIRECTION)

    def restart(self) -> None:
        """Points the camera at the robot where it stands now, and counts metres from there."""
        super().restart()
        self._way = Way(self._here(), float(self._robot.data.heading_w.torch[0]))
        self._onset_at: float | None = None

    def strike(self) -> None:
        """Marks the place where the robot is now as that of the fault."""
        self._onset_at = float(self._way.along(self._here()))

    def shoot_side(self, state: FaultState) -> Frame:
        """Takes a frame from where :meth:`follow` has brought the camera.

        Args:
            state: Which joints are broken.

        Returns:
            The frame.
        """
        view = self._point(state)
        frame, depth = self._seen("rgb")[..., :3], self._seen("distance_to_image_plane")[..., 0]
        albedo = self._seen("albedo")[..., :3].astype(int)
        ground = (np.abs(albedo - np.round(255 * np.asarray(GROUND_COLOR))) <= TOLERANCE).all(axis=-1)
        return paint_metres(frame, depth, view.ground_points(depth), ground, self._way, self._onset_at)

    def _here(self) -> np.ndarray:
        """Horizontal position of the trunk [m]."""
        return np.array(self._robot.data.root_pos_w.torch[0, :2].tolist())

    def _dye(self, colors: torch.Tensor, fixed: torch.Tensor) -> None:
        colors[fixed.to(colors.device)] = torch.tensor(GROUND_COLOR, device=colors.device)
