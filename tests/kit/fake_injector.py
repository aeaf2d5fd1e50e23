# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An injector of a made-up robot with two joints, for tests of panels."""

from __future__ import annotations

from umc.faults import find_kind
from umc.mdp import JointRow
from umc.mdp.fault_injector import severity_text
from umc.utils.errors import UmcError

LINKS = {"hip": "thigh", "knee": "shin"}
"""The link that each joint moves."""


class FakeInjector:
    """As :class:`umc.mdp.FaultInjector`; faults set in at once, at 1.5 s."""

    def __init__(
        self,
        num_envs: int = 4,
        links: dict[str, str] = LINKS,
        kinds: tuple[str, ...] = ("dead", "rom", "dropped"),
    ) -> None:
        self.num_envs, self.kinds, self._links = num_envs, kinds, links
        self.joint_names = tuple(links)
        self.faults: list[dict[str, dict[str, float | None]]] = [{} for _ in range(num_envs)]

    def rows(self, env_id: int) -> list[JointRow]:
        rows = []
        for joint, link in self._links.items():
            kinds = self.faults[env_id].get(joint, {})
            texts = [severity_text(find_kind(kind), value) for kind, value in kinds.items() if value is not None]
            severity = ", ".join(text for text in texts if text)
            since = 1.5 if kinds else None
            severities = tuple(value or 0.0 for value in kinds.values())
            detected = "dead" in kinds and len(kinds) > 1
            rows.append(JointRow(joint, tuple(kinds), severities, severity, detected, since, link))
        return rows

    def inject(self, env_id: int, joint: str, kind: str, severity: float | None = None) -> None:
        if joint not in self.joint_names:
            raise UmcError(f"the robot has no joint '{joint}'; choose from {', '.join(self.joint_names)}")
        self.faults[env_id].setdefault(joint, {})[kind] = severity

    def clear(self, env_id: int, joint: str | None = None) -> None:
        if joint is None:
            self.faults[env_id].clear()
        else:
            self.faults[env_id].pop(joint, None)
