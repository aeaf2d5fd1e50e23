# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Patch of Isaac Lab 3.0.0's viser visualizer: the ground plane is drawn by UMC's page."""


def patch_viser_visualizer() -> None:
    """Let ``isaaclab_visualizers.viser.viser_visualizer.NewtonViewerViser`` skip planes.

    What: replaces ``_log_plane_instances``. Isaac Lab draws a ground plane as lines on white, and
    :class:`umc.viewer.scene.Scene` draws a floor instead.
    Why: the method also stops the visualizer at the first frame: it calls ``self._to_numpy(...)``, which Newton 1.6.1
    no longer has.
    When it can go: once Isaac Lab lets a scene leave its ground plane out of the visualizer.
    """
    from isaaclab_visualizers.viser.viser_visualizer import NewtonViewerViser

    NewtonViewerViser._log_plane_instances = lambda *_, **__: None
