# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Patch for a fault of Isaac Lab 3.0.0 that stops its viser visualizer at the first frame."""

from typing import Any

import numpy as np


def patch_viser_visualizer() -> None:
    """Give ``isaaclab_visualizers.viser.viser_visualizer.NewtonViewerViser`` the method that it expects of its base.

    It calls ``self._to_numpy(...)`` wherever a scene has a ground plane. Newton 1.6.1, with which Isaac Lab 3.0.0 is
    installed, moved that method to a function of a private module: the call raises, and Isaac Lab removes the
    visualizer from the running simulation. The patch can go once Isaac Lab no longer calls it; where Newton has the
    method nothing is changed.
    """
    from isaaclab_visualizers.viser.viser_visualizer import NewtonViewerViser

    if not hasattr(NewtonViewerViser, "_to_numpy"):
        setattr(NewtonViewerViser, "_to_numpy", staticmethod(_to_numpy))  # noqa: B010 - unknown to type checkers


def _to_numpy(array: Any) -> np.ndarray | None:
    """Convert a Warp array or anything like an array; None stays None."""
    if array is None:
        return None
    return array.numpy() if hasattr(array, "numpy") else np.asarray(array)
