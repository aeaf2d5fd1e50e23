# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A robot in the mirror: which joint of the other side each joint becomes, and whether it turns the other way."""

from __future__ import annotations

import re
from collections.abc import Sequence

from umc.utils.errors import UmcError

SIDES = (
    (re.compile(r"^(?P<before>[FRH])L(?=_)"), r"\g<before>R"),
    (re.compile(r"^(?P<before>[FRH])R(?=_)"), r"\g<before>L"),
    (re.compile(r"^left(?=_)"), "right"),
    (re.compile(r"^right(?=_)"), "left"),
)
"""How a side is named (Unitree's and ODRI's robots), and what its mirror image is called."""

TURNED = re.compile(r"_(?:[A-Za-z]*(?:roll|yaw)|HAA)(?:_joint)?$|^[FR][LR]_hip_joint$")
"""Joints about the forward or the vertical axis: roll, yaw, hip abduction (A1's ``hip``). A mirror turns their angle
round; pitch joints, about the axis from side to side, keep it."""


def mirrored_joints(joint_names: Sequence[str]) -> tuple[list[int], list[float]]:
    """Where each joint of the mirror image comes from.

    Both sides have to have joint axes in the same directions, as they have in Unitree's and ODRI's models.

    Args:
        joint_names: J joint names.

    Returns:
        J columns and J signs: angle ``j`` in the mirror is ``sign[j] * angle[column[j]]``.

    Raises:
        UmcError: If a joint has no partner on the other side.
    """
    columns, signs = [], []
    for name in joint_names:
        partner = _other_side(name)
        if partner not in joint_names:
            raise UmcError(
                f"joint {name} has no mirror image {partner} among {', '.join(joint_names)}; leave mirror off"
            )
        columns.append(list(joint_names).index(partner))
        signs.append(-1.0 if TURNED.search(name) else 1.0)
    return columns, signs


def _other_side(name: str) -> str:
    for side, other in SIDES:
        if side.search(name):
            return side.sub(other, name)
    return name  # a joint in the middle
