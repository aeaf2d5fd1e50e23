# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Left-right mirror image of a robot: the partner and the sign of each joint."""

from __future__ import annotations

import re
from collections.abc import Sequence

from umc.utils.errors import UmcError

PAIRS = (("FL", "FR"), ("RL", "RR"), ("HL", "HR"), ("left", "right"))
"""How names of joints on the left and on the right begin, up to the first ``_`` (Unitree's and ODRI's robots)."""

OTHER_SIDE = {**dict(PAIRS), **{right: left for left, right in PAIRS}}

MIDDLE = ("waist", "torso", "trunk", "spine", "neck", "head")
"""How names of joints in the middle begin, which are their own mirror images."""

TURNED = re.compile(r"_(?:[A-Za-z]*(?:roll|yaw)|HAA)(?:_joint)?$|^[FRH][LR]_hip_joint$|^torso_joint$")
"""Joints about the forward or the vertical axis: roll, yaw, hip abduction (A1's ``hip``), H1's ``torso``. A mirror
changes the sign of their angle."""

KEPT = re.compile(r"_(?:[A-Za-z]*(?:pitch|thigh|calf|knee|ankle|elbow|wheel)|HFE|KFE)(?:_joint)?$")
"""Joints about the lateral axis, which keep it."""


def mirrored_joints(joint_names: Sequence[str]) -> tuple[list[int], list[float]]:
    """Return J columns and J signs: angle ``j`` in the mirror is ``sign[j] * angle[column[j]]``.

    Both sides need joint axes in the same directions, as in Unitree's and ODRI's models. UmcError without a partner.
    """
    columns, signs = [], []
    for name in joint_names:
        partner = _other_side(name)
        if partner not in joint_names:
            raise UmcError(
                f"joint {name} has no mirror image {partner} among {', '.join(joint_names)}; leave mirror off"
            )
        if not TURNED.search(name) and not KEPT.search(name):
            raise UmcError(
                f"joint {name}: its name does not say about which axis it turns; known are FL_hip_joint and names that "
                "end in roll, pitch, yaw, thigh, calf, knee, ankle, elbow, wheel, HAA, HFE or KFE; leave mirror off"
            )
        columns.append(list(joint_names).index(partner))
        signs.append(-1.0 if TURNED.search(name) else 1.0)
    return columns, signs


def _other_side(name: str) -> str:
    side, _, joint = name.partition("_")
    if joint and side in OTHER_SIDE:
        return f"{OTHER_SIDE[side]}_{joint}"
    if side in MIDDLE:
        return name
    raise UmcError(
        f"joint {name} does not say on which side it is: FL_, FR_, RL_, RR_, HL_, HR_, left_ and right_ are known, and "
        "waist_, torso_, trunk_, spine_, neck_ and head_ in the middle; leave mirror off"
    )
