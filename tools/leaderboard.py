# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""docs/leaderboard.md from the cards in docs/cards: ``./isaaclab.sh -p -m tools.leaderboard``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template
from umc.cli.benchmark import PROTOCOL
from umc.evaluation.card import READINGS, Card, check_overrides, digest_of, read_card
from umc.evaluation.metrics import main_rates
from umc.evaluation.protocol import protocol_for
from umc.utils.cli import Parser, run_main
from umc.utils.console import escape_markdown
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write
from umc.utils.naming import display_name

ROOT = Path(__file__).resolve().parents[1]
CARDS, PAGE = ROOT / "docs" / "cards", ROOT / "docs" / "leaderboard.md"

FAULTS = {
    "a1": "ccfa72910bb5d106c009318f0e5d0b0c30dc490564f070b52254b898dce80282",
    "g1": "f105cb22e9d8e503202e59e5f877ac0cb15ced8f616ab558b259a6d53158fa52",
    "go2": "ccfa72910bb5d106c009318f0e5d0b0c30dc490564f070b52254b898dce80282",
    "h1": "cd2fc2ea25332b9fc211d221a66544adc1b78e953a89f9536a6692073e8d4e6f",
    "solo8": "7b47b707772f78b6015ec6c940a6d6960d46ca3614a327e3cdc0468f36835271",
}
"""SHA-256 of who has which faulty joints from when on, for the robots that have a card."""

RERUN = (
    "a1_normal_mlp",
    "a1_umc_mlp",
    "g1_normal_mlp",
    "g1_umc_mlp",
    "g1_unitree_lstm",
    "go2_normal_mlp",
    "go2_umc_mlp",
    "h1_normal_gru",
    "h1_normal_mlp",
    "h1_umc_gru",
    "h1_umc_mlp",
    "h1_unitree_lstm",
    "solo8_normal_mlp",
    "solo8_umc_mlp",
)
"""Cards that a maintainer has made; all others are marked as self-reported."""

ALLOWED = ("policy", "joint_mask", "fault_flag")
"""Observation groups that a ranked policy reads."""

ENGINES = {"ovphysx": ("ovphysx",), "newton_mjwarp": ("newton", "mujoco_warp", "warp")}
"""Packages of an engine."""


@dataclass(frozen=True)
class Row:
    """A line of a table."""

    file: str
    """Name of the card's files, without their endings."""
    card: Card
    rank: int
    reads: str
    origin: str
    versions: str


def read_cards(folder: Path = CARDS) -> dict[str, Card]:
    """Return the cards of a folder by file name; raise UmcError for one that cannot be compared with the others."""
    cards = {path.stem: read_card(path) for path in sorted(folder.glob("*.json"))}
    first: dict[tuple[str, str], Card] = {}
    for name, card in cards.items():
        same = first.setdefault((card.robot, card.physics), card)
        if not card.complete:
            raise UmcError(f"{name} is of a --quick run; make it without --quick")
        protocol = protocol_for(card.robot, name=PROTOCOL)
        main = [metric.key for metric in main_rates(protocol.radii)]
        if (card.protocol_sha256, card.main) != (digest_of(protocol.describe()), main):
            raise UmcError(f"{name} was made under other conditions than {PROTOCOL}; make it with this version of umc")
        if card.task != (task := f"UMC-{display_name(card.robot)}-Stage2"):
            raise UmcError(f"{name} was made in {card.task} instead of {task}; make it with umc benchmark")
        if card.faults_sha256 != FAULTS.get(card.robot, same.faults_sha256):
            raise UmcError(f"{name} has other faults than the others of {card.robot}; make it with this version of umc")
        if (card.env_sha256, card.files_sha256) != (same.env_sha256, same.files_sha256):
            raise UmcError(f"{name} has another env cfg or other files than {same.name}; make both with one umc")
        check_overrides([*card.overrides, *(card.policy.env_overrides or ())], name)
    return cards


def leaderboard(cards: dict[str, Card]) -> str:
    """Render the page: a table for each robot and engine, and the policies that have no rank."""
    template = Template(
        Path(__file__).with_suffix(".md.jinja").read_text(encoding="utf-8"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    tables: dict[tuple[str, str], dict[str, Card]] = {}
    for name, card in cards.items():
        tables.setdefault((card.robot, card.physics), {})[name] = card
    protocols = {robot: protocol_for(robot, name=PROTOCOL) for robot in ("a1", "g1", "go2", "h1", "solo8")}
    return (
        template.render(
            tables={key: ranked(some) for key, some in sorted(tables.items())},
            others={key: unranked(some) for key, some in tables.items()},
            protocols={display_name(robot): (one, digest_of(one.describe())) for robot, one in protocols.items()},
            readings=READINGS,
            display_name=display_name,
            escaped=escape_markdown,
        )
        + "\n"
    )


def ranked(cards: dict[str, Card]) -> list[Row]:
    """Return the policies that read what is allowed, by their main rate under torque limits.

    A rank is one more than the number of policies whose interval lies above.
    """
    some = [(name, card) for name, card in cards.items() if refusal(card) is None]
    some.sort(key=lambda one: -_main(one[1])[0])
    return [
        Row(
            name,
            card,
            1 + sum(_main(other)[1] > _main(card)[2] for _, other in some),
            _reads(card.reads or {}),
            "maintainers" if name in RERUN else "self-reported",
            ", ".join(f"{one} {card.versions.get(one)}" for one in ("umc", *ENGINES.get(card.physics, ()))),
        )
        for name, card in some
    ]


def unranked(cards: dict[str, Card]) -> list[tuple[str, Card, str]]:
    """Return the other policies with the reason."""
    return [(name, card, reason) for name, card in cards.items() if (reason := refusal(card)) is not None]


def refusal(card: Card) -> str | None:
    """Return why a policy has no rank; None if it has one."""
    if card.reads is None:
        return "a function, which gets the whole environment"
    other = [group for group in card.reads if group not in ALLOWED]
    return f"reads {', '.join(other)}" if other else None


def _reads(groups: dict[str, list[str]]) -> str:
    return "; ".join(
        f"{group}: {', '.join(terms)}" if group == ALLOWED[0] else group for group, terms in groups.items()
    )


def _main(card: Card) -> Sequence[Any]:
    return card.readings[READINGS[0]].average[card.main[0]]


def main(argv: list[str]) -> int:
    """Write the page; return the exit status."""
    Parser(description=__doc__).parse_args(argv)
    with atomic_write(PAGE) as file:
        file.write(leaderboard(read_cards()).encode())
    print(PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(run_main(main, sys.argv[1:]))
