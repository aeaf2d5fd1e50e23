# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A mend for a fault of Isaac Lab 3.0.0 that stops its viser visualizer at the first frame."""

from typing import Any

import numpy as np


def mend_viser_visualizer() -> None:
    """Gives ``isaaclab_visualizers.viser.viser_visualizer.NewtonViewerViser`` the method that it asks its base for.

    What: it calls ``self._to_numpy(...)`` wherever a scene has a ground plane.
    Why: Newton's ``ViewerViser`` had that method; in Newton 1.6.1, with which Isaac Lab 3.0.0 is installed, it is a
    function of a private module. The call raises, and Isaac Lab takes the visualizer out of the running simulation.
    The mend: the method, where the class lacks it.
    When it can go: once Isaac Lab no longer calls it, or Newton has it again (then nothing is done here).
    """
    from isaaclab_visualizers.viser.viser_visualizer import NewtonViewerViser

    if not hasattr(NewtonViewerViser, "_to_numpy"):
        setattr(NewtonViewerViser, "_to_numpy", staticmethod(to_numpy))  # noqa: B010 - type checkers know no such method


def to_numpy(array: Any) -> np.ndarray | None:
    """Turns what Newton's viewer hands on into NumPy's.

    Args:
        array: A Warp array, anything like an array, or None.

    Returns:
        The same values, shared with a Warp array on the CPU; None for None.
    """
    if array is None:
        return None
    return array.numpy() if hasattr(array, "numpy") else np.asarray(array)
