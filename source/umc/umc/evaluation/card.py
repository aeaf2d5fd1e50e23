# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a policy reached under frozen conditions, as a file that others can check and compare (docs/leaderboard.md)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import torch
from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from umc.evaluation.arguments import HEALTHY, scenario
from umc.evaluation.checkpoints import Checkpoint, External
from umc.evaluation.estimates import RobotTable
from umc.evaluation.metrics import Outcome, counts_of, main_rates
from umc.evaluation.study import PolicyResult, Study
from umc.faults import find_scenario
from umc.rl.checkpoint import interface_of
from umc.utils.config import FileModel, OpenFile, validated
from umc.utils.errors import UmcError
from umc.utils.io import fingerprint, sha256
from umc.utils.naming import display_name
from umc.utils.text import read_json

if TYPE_CHECKING:
    from umc.evaluation.session import Session

FORMAT = 1
"""Version of the layout."""

SCENARIOS = tuple(str(number) for number in range(1, HEALTHY + 1))
"""Scenarios of a card."""

EFFORT = "effort"
"""Kind of fault that two readings of the paper differ in: a torque limit has an effect, or it has none."""

READINGS = ("with torque limits", "without torque limits")
"""Names of the readings."""

FROZEN = ("env.scene.robot.", "env.sim.", "env.decimation")
"""Overrides of a training that would change the conditions, of those that an evaluation repeats."""

SECTIONS = (
    *("sim", "scene", "seed", "decimation", "episode_length_s"),
    *("events", "terminations", "commands", "bodies", "parts"),
)
"""Parts of the env cfg that are the same for all policies; what a policy reads and its actions are its own."""

OF_MACHINE = re.compile(r"num_envs|device|\w*_dir|\w*visualizer\w*")
"""Fields of the env cfg that differ between machines, or that only draw."""

Rate = Annotated[list[Annotated[float, Field(ge=0.0, le=1.0)]], Field(min_length=3, max_length=3)]
"""A share of robots with the ends of its interval."""

Rates = dict[str, Rate]


class Reading(FileModel):
    """Results under one reading."""

    average: Rates
    scenarios: dict[str, Rates]


class PolicyFile(OpenFile):
    """What is known about a policy; files of others say less than UMC's checkpoints."""

    file: str
    """Its name, without the folder."""
    sha256: str
    env_overrides: list[str] | None
    """Those of its training."""


class Code(FileModel):
    """State of the checkout of UMC."""

    commit: str
    dirty: bool


class Card(FileModel):
    """The file ``card.json``."""

    format: int
    benchmark: str
    """Name and version of the protocol."""
    name: Annotated[str, Field(min_length=1, max_length=100)]
    policy: PolicyFile
    reads: dict[str, list[str]] | None
    """Terms that the policy reads, by observation group of the task; None for a function, which gets the env."""
    overrides: list[str]
    """Overrides of its training that were repeated."""
    robot: str
    task: str
    physics: str
    robots: PositiveInt
    fell_before_onset: NonNegativeInt
    """Robots that fell before the fault set in; they count as failed."""
    non_finite: NonNegativeInt
    """Robots whose physics became non-finite; they count as failed."""
    complete: bool
    """Whether these are the full conditions, rather than those of ``--quick``."""
    protocol_sha256: str
    faults_sha256: str
    """Of who has which faulty joints from when on."""
    env_sha256: str
    """Of the env cfg (:data:`SECTIONS`), as it was simulated."""
    files_sha256: dict[str, str]
    """Of the files that the env cfg names: robot and ground."""
    main: Annotated[list[str], Field(min_length=2, max_length=2)]
    """Keys of the two rates that the leaderboard shows."""
    readings: dict[str, Reading]
    versions: dict[str, str | None]
    code: Code | None
    time: str
    digest: str
    """SHA-256 of everything else."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if set(self.readings) - set(READINGS) or len(self.readings) < (len(READINGS) if self.complete else 1):
            raise ValueError(f"the readings have to be {' and '.join(READINGS)}")
        for name, reading in self.readings.items():
            if set(reading.scenarios) != set(SCENARIOS):
                raise ValueError(f"the reading {name} needs the scenarios {', '.join(SCENARIOS)}")
            if any(set(self.main) - set(rates) for rates in (reading.average, *reading.scenarios.values())):
                raise ValueError(f"the reading {name} lacks one of the rates {', '.join(self.main)}")
        return self


@dataclass(frozen=True)
class Conditions:
    """What a study does not hold of the simulation that it comes from."""

    env_sha256: str
    files_sha256: Mapping[str, str]
    overrides: Sequence[str]
    reads: Sequence[dict[str, list[str]] | None]
    """By policy."""


def conditions_of(session: Session, labels: Sequence[str]) -> Conditions:
    """Return the conditions of policies that are about to be simulated; UmcError for those that can have no card."""
    from isaaclab.utils import to_dict

    stems: dict[str, str] = {}
    for label in labels:
        if not 0 < len(label) <= 100:
            raise UmcError(f"a card's name has 1 to 100 letters, and one has {len(label)}; give others by --labels")
        if (other := stems.setdefault(stem_of(session.info.robot, label), label)) != label:
            raise UmcError(f"{other} and {label} would have the same files; give names with other letters by --labels")
    check_overrides(session.repeated, "this policy")
    files: dict[str, str] = {}
    env: dict[str, Any] = to_dict(session.env_cfg)
    # without the parts that nobody named, so that a new one leaves published cards valid
    env["parts"] = {name: value for name, value in env["parts"].items() if value is not None}
    described = _described({name: env.get(name) for name in SECTIONS}, files)
    overrides = interface_of(session.repeated)
    reads = [_reads(one, session.env_cfg) for one in session.checkpoints]
    return Conditions(digest_of(described), files, overrides, reads)


def check_overrides(tokens: Sequence[str], name: str) -> None:
    """Raise UmcError if a training had other conditions, which an evaluation of its policy repeats."""
    if changed := [token for token in interface_of(tokens) if token.startswith(FROZEN)]:
        raise UmcError(
            f"{name} was trained with {' '.join(changed)}, and the conditions are frozen; train without, or use umc "
            "evaluate"
        )


def _described(values: Any, files: dict[str, str]) -> Any:
    """Return plain values without those of the machine, and add the files that they name."""
    if isinstance(values, Mapping):
        kept = {key: value for key, value in values.items() if not OF_MACHINE.fullmatch(str(key))}
        for key, value in kept.items():
            if key == "usd_path" and isinstance(value, str):
                kept[key] = Path(value).name
                files[kept[key]] = sha256(Path(value))
        return {str(key): _described(value, files) for key, value in kept.items()}
    if isinstance(values, list | tuple):
        return [_described(value, files) for value in values]
    return values


def _reads(one: Checkpoint, env_cfg: Any) -> dict[str, list[str]] | None:
    from isaaclab.managers import ObservationTermCfg

    from umc.mdp.observations import entries
    from umc.rl.external import GROUP, TermDescription, load_source
    from umc.rl.policy import ACTOR_SET, stored_agent

    found: dict[str, list[str]] = {}
    if isinstance(one, External):
        if one.external.function is not None:
            return None
        wanted = one.external.description.observations
        groups = [*([GROUP] if wanted is None else ()), *load_source(one.external).groups]
        for term in wanted or ():
            assert isinstance(term, TermDescription)
            owner, _, name = term.term.rpartition("/")
            found.setdefault(owner or GROUP, []).append(name)
    else:
        groups = stored_agent(one.path, one.info)["obs_groups"][ACTOR_SET]
    for group in groups:
        terms = entries(entries(env_cfg.observations).get(group) or {})  # loading the policy refuses what is missing
        found[group] = [name for name, term in terms.items() if isinstance(term, ObservationTermCfg)]
    return found


def card_of(study: Study, result: PolicyResult, conditions: Conditions) -> Card:
    """Return the card of one of a study's policies, in which every robot counts."""
    protocol, about = study.protocol, study.about
    policy = {key: value for key, value in result.about.items() if key != "path"}
    if "reads" in policy:
        policy["reads"] = {**policy["reads"], "file": Path(policy["reads"]["file"]).name}
    counts = counts_of(result.run.episodes)
    fields = {
        "format": FORMAT,
        "benchmark": protocol.name,
        "name": result.label,
        "policy": {"file": Path(str(result.about["path"])).name, **policy},
        "reads": conditions.reads[[one.label for one in study.policies].index(result.label)],
        "overrides": list(conditions.overrides),
        "robot": protocol.robot,
        "task": about["task"],
        "physics": about["physics"],
        "robots": len(result.run.cell),
        "fell_before_onset": counts["fell_before_onset"],
        "non_finite": counts["non_finite"],
        "complete": not about["quick"],
        "protocol_sha256": digest_of(protocol.describe()),
        "faults_sha256": _faults_digest(result),
        "env_sha256": conditions.env_sha256,
        "files_sha256": dict(conditions.files_sha256),
        "main": [metric.key for metric in main_rates(protocol.radii)],
        "readings": _readings(study, result),
        "versions": about["versions"],
        "code": about["git"],
        "time": about["time"],
    }
    return validated(Card, {**fields, "digest": digest_of(fields)}, result.label)


def _readings(study: Study, result: PolicyResult) -> dict[str, Any]:
    """Return the rates of both readings; scenarios without a torque limit are the same in both, and use all robots."""
    protocol, table = study.protocol, RobotTable(study, _all_counted(result))
    inert = torch.tensor([EFFORT in setting.severity for setting, _ in protocol.cells])[result.run.cell]
    limited = torch.tensor([EFFORT in find_scenario(name).kinds for _, name in protocol.cells])[result.run.cell]
    found = {}
    for reading, other in zip(READINGS, (inert, ~inert), strict=True):
        rows = ~(limited & other)
        if not rows[limited].any():
            continue  # --quick has one setting
        each = {str(name): table.rates(rows, [name]) for name in protocol.scenarios}
        rates = {"average": table.rates(rows), "scenarios": each}
        found[reading] = _plain(rates)
    return found


def _all_counted(result: PolicyResult) -> PolicyResult:
    """Count every robot that did not stay up as failed; the paper leaves out those that fell before the onset."""
    episodes = result.run.episodes
    up = episodes.outcome == Outcome.UP
    outcome = torch.where(up, episodes.outcome, int(Outcome.FAILED))
    return replace(result, run=replace(result.run, episodes=replace(episodes, outcome=outcome)))


def _plain(rates: Any) -> Any:
    if isinstance(rates, dict):
        return {key: _plain(value) for key, value in rates.items() if value is not None}
    return [round(number, 6) for number in (rates.value, rates.low, rates.high)]


def _faults_digest(result: PolicyResult) -> str:
    run = result.run
    order = torch.argsort(run.member * (int(run.cell.max()) + 1) + run.cell)
    digest = hashlib.sha256()
    for tensor in (run.cell, run.member, run.onset, run.joints.long()):
        digest.update(tensor[order].numpy().astype("<i8").tobytes())
    return digest.hexdigest()


def digest_of(content: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything but the digest itself."""
    return fingerprint({key: value for key, value in content.items() if key != "digest"})


def stem_of(robot: str, name: str) -> str:
    """Return the name of a card's files, without their endings."""
    return f"{robot}_{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_') or 'policy'}"


def page_of(card: Card) -> str:
    """Render a card as Markdown."""
    from umc.evaluation.breakdown import scenario_name
    from umc.evaluation.report.renderers import render

    names = {"robot": display_name(card.robot), "picture": f"{stem_of(card.robot, card.name)}.svg"}
    return render("card.md", card=card, **names, scenario=lambda name: scenario_name(scenario(name)))


def write_card(card: Card, folder: Path) -> list[Path]:
    """Write a card as JSON, as Markdown and with its picture; return the three files."""
    from umc.evaluation.report import plots
    from umc.evaluation.report.write import write_all

    content = card.model_dump()
    picture = plots.image(plots.card_bars(content["readings"], card.main), "svg")
    text = json.dumps(content, indent=1, allow_nan=False)
    stem = stem_of(card.robot, card.name)
    files = {f"{stem}.json": f"{text}\n".encode(), f"{stem}.md": page_of(card).encode(), f"{stem}.svg": picture}
    write_all(folder, files)
    return [folder / name for name in files]


def read_card(path: Path) -> Card:
    """Read a card; raise UmcError if it is invalid or has been changed."""
    fix = "regenerate it with umc benchmark"
    content = read_json(path, fix)
    card = validated(Card, content, f"{path} is no card ({fix})")
    if card.format != FORMAT:
        raise UmcError(f"{path} has format {card.format} instead of {FORMAT}; {fix}")
    if digest_of(content) != card.digest:
        raise UmcError(f"{path} has been changed: its digest is another; {fix}")
    return card
