# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Data of the results page; its text is results.md.jinja."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from umc.evaluation.estimates import Estimates
from umc.evaluation.report.paper import departures
from umc.evaluation.report.renderers import percent
from umc.evaluation.report.tables import left_out_table, main_table, scenario_table
from umc.evaluation.study import PolicyResult, Study
from umc.faults import paper_settings
from umc.faults.scenarios import PAPER
from umc.rl.agents import STAGE_ITERATIONS, AgentSpec, agent_spec
from umc.utils.naming import display_name

from tools.results_page.acceptance import (
    ENDS,
    HARD,
    Criterion,
    acceptance_reached,
    best_and_baseline,
    criteria_of,
    ends,
    inert_reading,
    main_rates,
    paper_criteria,
    paper_rates,
    rate,
)
from tools.results_page.kept import NAME_LENGTH

STANDING_HEIGHT = {"a1": 0.28, "g1": 0.80, "go2": 0.27, "h1": 1.01, "solo8": 0.21}
"""Trunk height at the default pose [m], with zero action (docs/robots.md); G1 falls then: its height at reset."""

HEIGHT_BAND = 0.20
"""How far the trunk of a walking robot may be from there [-]."""

IMAGES = "images"
"""Folder of pictures beside the page."""

PAPER_AGENTS = ("transformer", "mlp", "nm_transformer", "nm_mlp", "body_transformer")
"""Agents of the paper's main tables."""

ENGINES = {"newton_mjwarp": "Newton", "ovphysx": "PhysX (ovphysx)", "mujoco": "plain MuJoCo"}
"""What the page calls the engines."""

GROUNDS = {"flat": "flat ground", "perlin": "tracks"}
"""What the page calls the grounds."""

MEANING = {
    "robots of each": "Fewer robots widen the intervals; where faults were drawn independently, few robots also break "
    "fewer joints than many would ([which joints fail](evaluation.md#which-joints-fail)).",
    "simulator": "Contacts, joint limits and motors are solved otherwise than in Isaac Gym, where torque limits may "
    "have had no effect ([two readings](#two-readings-of-the-torque-limit)).",
    "track": "Flat ground is easier to walk on than the paper's noise: it favors our rates of reaching a radius.",
}
"""What a departure may do to a figure, by its first word."""


@dataclass(frozen=True)
class RobotResults:
    """Results of one robot on one ground: a section of the page."""

    robot: str
    engine: str
    """Engine of the main tables."""
    studies: Mapping[str, Study]
    """Evaluations of all policies, by engine."""
    mujoco: Sequence[Study] = ()
    """One for each policy that was evaluated in plain MuJoCo."""
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Entries of ``models.json`` by SHA-256."""
    ground: str = ""
    """Ground of this section, where a robot's policies were trained on several."""
    inert: Study | None = None
    """The scenarios with torque limits, simulated with limits without effect; None where it was not measured."""
    without_oracle: Mapping[str, Any] | None = None
    """What tools.results_page.without_oracle says of it."""

    @property
    def title(self) -> str:
        """Heading of the section."""
        return display_name(self.robot) + (f", {GROUNDS.get(self.ground, self.ground)}" if self.ground else "")

    @property
    def trained_here(self) -> list[PolicyResult]:
        """Policies that were trained on the ground of this section; all where a robot has one section."""
        here = self.ground
        return [one for one in self.study.policies if not here or (one.about.get("terrain") or "flat") == here]

    @property
    def study(self) -> Study:
        """The evaluation of the main tables."""
        return self.studies[self.engine]

    def entry(self, result: PolicyResult) -> Mapping[str, Any]:
        """Return the entry of a policy in ``models.json``; empty where it is not in the package."""
        return self.entries.get(str(result.about.get("sha256")), {})


def section_name(robot: str, ground: str) -> str:
    """Return the name of a section's folder and of its notes."""
    return robot if ground in ("", "flat") else f"{robot}_{ground}"


def results_page(results: Sequence[RobotResults], about: Mapping[str, str], notes: Mapping[str, str]) -> str:
    """Render the page; ``about`` has ``command``, ``time``, ``commit``, ``notes`` explanations by section name."""
    criteria = [(one.title, criterion) for one in results for criterion in _criteria(one)]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, undefined=StrictUndefined,
    )  # fmt: skip
    return environment.get_template("results.md.jinja").render(
        **about,
        overview=f"{IMAGES}/results.png",
        made_up=sorted({str(one.study.about["note"]) for one in results if one.study.about.get("note")}),
        criteria=criteria,
        met=_met(criteria, lambda _: True),
        against_baselines=_met(criteria, lambda one: "torque limits" not in one.demand),
        limits_act=_met(criteria, lambda one: "torque limits act" in one.demand),
        without_effect=_met(criteria, lambda one: "torque limits without effect" in one.demand),
        sections=[_section(one, notes.get(section_name(one.robot, one.ground), "")) for one in results],
        hard=HARD,
        height_band=HEIGHT_BAND,
        ends=ENDS,
        gaps=_gaps(results),
        readings=[row for one in results for row in _readings(one)],
        without_oracle=[one.without_oracle for one in results if one.without_oracle is not None],
    )


def _criteria(one: RobotResults) -> list[Criterion]:
    found = criteria_of(one.study)
    if one.inert is not None:
        found += paper_criteria(inert_reading(one.study, one.inert), "torque limits without effect")
    return found


def _readings(one: RobotResults) -> list[list[str]]:
    """Cells of every policy, in both readings: scenarios with torque limits, the average of all; then the paper's."""
    if one.inert is None:
        return []
    rows, keys = [], (acceptance_reached(one.robot), "failed")
    limited, studies = one.inert.protocol.scenarios, (one.study, inert_reading(one.study, one.inert))
    for number, result in enumerate(one.study.policies):
        cells = []
        for study in studies:
            policy = study.policies[number]
            for scenarios in (*([scenario] for scenario in limited), study.protocol.scenarios):
                rates = (rate(study, policy, key, scenarios) for key in keys)
                cells.append(", ".join("-" if one is None else f"{100 * one.value:.0f}" for one in rates))
        paper = paper_rates(one.study, result)
        rows.append([one.title, result.label, *cells, "-" if paper is None else "{:g}, {:g}".format(*paper)])
    return rows


def _section(one: RobotResults, note: str) -> dict[str, Any]:
    study = one.study
    estimates = Estimates(study)
    by_scenario = [scenario_table(estimates, group) for group in estimates.groups]
    low = (1.0 - HEIGHT_BAND) * STANDING_HEIGHT.get(one.robot, 0.0)
    return {
        "title": one.title,
        "of_paper": one.robot in PAPER["robots"],
        "picture": f"{IMAGES}/results_{section_name(one.robot, one.ground)}.png",
        "policies": [_origin(one, result) for result in one.trained_here],
        "shown": [one.label for one in best_and_baseline(study)],
        "engine": _engine(str(study.about.get("physics", ""))),
        "ground": "tracks of Perlin noise" if study.protocol.track else "flat ground",
        "robots": study.about.get("robots_per_cell", "?"),
        "note": note.strip(),
        "tables": [main_table(estimates), *by_scenario, left_out_table(estimates)],
        "low": f"{low:.2f}",
        "radius": f"{study.protocol.radii[0]:g}",
        "ends": [
            [result.label, *(f"{shares[name]:.0%}" for name in ENDS)]
            for result in study.policies
            if low and (shares := ends(study, result, HARD, low)) is not None
        ],
        "gaits": [
            (result.label, gait, gait["trunk_height"] / STANDING_HEIGHT.get(one.robot, float("nan")))
            for result in one.trained_here
            if (gait := one.entry(result).get("metrics", {}).get("healthy"))
        ],
        "reached": acceptance_reached(one.robot),
        "flat_only": bool(one.mujoco and study.protocol.track),
        "engines": _engines(one) if len(one.studies) > 1 or one.mujoco else [],
        "differences": _differences(one),
    }


def _origin(one: RobotResults, result: PolicyResult) -> list[Any]:
    """Where a policy comes from: the cells of its row."""
    about, entry = result.about, one.entry(result)
    trained = entry.get("trained") or {}
    place = [_engine(str(about.get("physics", ""))), str(about.get("terrain", "")), trained.get("device")]
    return [
        display_name(one.robot), result.label, about.get("stage", "-"), entry.get("recipe") or "-",
        about.get("seed", "-"),
        about["iteration"] + 1 if isinstance(about.get("iteration"), int) else "-", trained.get("num_envs") or "-",
        ", ".join(filter(None, place)) or "-", str(entry.get("commit") or "-")[:10],
        str(about.get("sha256", "-"))[:NAME_LENGTH], _commit(result),
    ]  # fmt: skip


def _engines(one: RobotResults) -> list[list[Any]]:
    """Cells of every policy on every engine that it was evaluated on."""
    rows = []
    studies = [*one.studies.items(), *(("mujoco", study) for study in one.mujoco)]
    for result in one.study.policies:
        measured = [
            (engine, same, main_rates(study, same))
            for engine, study in studies
            for same in study.policies
            if same.about.get("sha256") == result.about.get("sha256")
        ]
        trained = str(result.about.get("physics") or one.engine)
        base = next((reached for engine, _, (reached, _) in measured if engine == trained), None)
        for engine, same, (reached, failed) in measured:
            own = engine == trained
            drop = "-" if own or base is None or reached is None else f"{round(100 * (base.value - reached.value)):+d}"
            name = f"{_engine(engine)}{' (trained on it)' if own else ''}"
            rows.append([result.label, name, percent(reached), percent(failed), drop, _commit(same)])
    return rows


def _met(criteria: Sequence[tuple[str, Criterion]], counts: Callable[[Criterion], bool]) -> str:
    """Say how many of the criteria that count are met, of those that were measured."""
    met = [one.met for _, one in criteria if one.met is not None and counts(one)]
    return f"{sum(met)} of {len(met)}"


def _differences(one: RobotResults) -> list[str]:
    """Departures of evaluation and training from the paper, of a robot that it has."""
    if one.robot not in PAPER["robots"]:
        return []
    lines = []
    for text in departures(one.study):
        meaning = next((f" {words}" for start, words in MEANING.items() if text.startswith(start)), "")
        lines.append(f"Evaluation: {text}.{meaning}")
    paper = paper_settings(one.robot, "training")
    for result in one.trained_here:
        trained = one.entry(result).get("trained") or {}
        said = []
        iteration = result.about.get("iteration")
        if isinstance(iteration, int) and iteration + 1 != STAGE_ITERATIONS:
            said.append(f"{iteration + 1:,} iterations in its last stage instead of {STAGE_ITERATIONS:,} in each")
        if trained.get("num_envs") not in (None, paper["num_envs"]):
            said.append(f"{trained['num_envs']:,} envs instead of {paper['num_envs']:,}")
        if one.robot == "a1" and result.about.get("terrain") == "flat":
            said.append("flat ground instead of tracks")
        if said:
            lines.append(f"Training of {result.label}: {'; '.join(said)}.")
    return lines


def _gaps(results: Sequence[RobotResults]) -> list[str]:
    """What of the paper's main tables and ablations was not run."""
    found: dict[str, list[AgentSpec]] = {}
    for one in results:
        for result in one.study.policies:
            spec = agent_spec(str(result.about.get("agent", "")))
            if spec is not None and result.about.get("stage") == spec.stages[-1]:
                found.setdefault(one.robot, []).append(spec)
    lines = []
    for robot in PAPER["robots"]:
        names = [spec.name for spec in found.get(robot, [])]
        gone = ", ".join(agent for agent in PAPER_AGENTS if agent not in names)
        if robot not in {one.robot for one in results}:
            lines.append(f"{display_name(robot)}: nothing.")
        elif gone:
            lines.append(f"{display_name(robot)}: the paper's {gone}.")
    if not any(spec.purpose.startswith("ablation") for specs in found.values() for spec in specs):
        lines.append(
            "The paper's ablations are in the [experiments](experiments.md#the-papers-ablations) with a transformer, "
            "two trainings each, in the [training guide](training_guide.md) with A1's MLP, one each."
        )
    return lines


def _commit(result: PolicyResult) -> str:
    """The commit that simulated a policy."""
    return str(result.about.get("simulated") or "-")[:10]


def _engine(name: str) -> str:
    return ENGINES.get(name, "plain MuJoCo" if name.startswith("mujoco ") else name)
