# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""docs/leaderboard.md from the cards in docs/cards: ``./isaaclab.sh -p -m tools.leaderboard``."""

from __future__ import annotations

from pathlib import Path

from jinja2 import StrictUndefined, Template
from umc.cli.benchmark import PROTOCOL
from umc.evaluation.card import READINGS, Card, digest_of, read_card
from umc.evaluation.protocol import protocol_for
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write
from umc.utils.naming import display_name

ROOT = Path(__file__).resolve().parents[1]
CARDS, PAGE = ROOT / "docs" / "cards", ROOT / "docs" / "leaderboard.md"


def read_cards(folder: Path = CARDS) -> dict[str, Card]:
    """Return the cards of a folder by file name; raise UmcError for one that cannot be compared with the others."""
    cards = {path.stem: read_card(path) for path in sorted(folder.glob("*.json"))}
    first: dict[str, Card] = {}
    for name, card in cards.items():
        same = first.setdefault(card.robot, card)
        if not card.complete:
            raise UmcError(f"{name} is of a --quick run; make it without --quick")
        if card.protocol_sha256 != digest_of(protocol_for(card.robot, name=PROTOCOL).describe()):
            raise UmcError(f"{name} was made under other conditions than {PROTOCOL}; make it with this version of umc")
        if card.task != (task := f"UMC-{display_name(card.robot)}-Stage2"):
            raise UmcError(f"{name} was made in {card.task} instead of {task}; make it with umc benchmark")
        if card.faults_sha256 != same.faults_sha256:
            raise UmcError(f"{name} has other faults than {same.name}; make it with this version of umc")
    return cards


def leaderboard(cards: dict[str, Card]) -> str:
    """Render the page; the best average under torque limits comes first."""
    template = Template(
        Path(__file__).with_suffix(".md.jinja").read_text(encoding="utf-8"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    robots: dict[str, list[tuple[str, Card]]] = {}
    for name, card in cards.items():
        robots.setdefault(card.robot, []).append((name, card))
    for rows in robots.values():
        rows.sort(key=lambda row: -row[1].readings[READINGS[0]].average[row[1].main[0]][0])
    return template.render(robots=robots, readings=READINGS, display_name=display_name) + "\n"


if __name__ == "__main__":
    with atomic_write(PAGE) as file:
        file.write(leaderboard(read_cards()).encode())
    print(PAGE)
