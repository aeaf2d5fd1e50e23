# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The page itself, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from umc.evaluation.estimates import Estimates
from umc.evaluation.report.paper import departures
from umc.evaluation.report.tables import left_out_table, main_table, scenario_table
from umc.evaluation.study import PolicyResult, Study
from umc.faults import paper_settings
from umc.rl.agents import STAGE_ITERATIONS, agent_spec

from tools.results_page.bars import DEFAULT_RADIUS, HARD, RADIUS, Bar, bars_of, percent, rate
from tools.results_page.ends import ENDS, ends

STANDING_HEIGHT = {"a1": 0.28, "h1": 1.01, "g1": 0.80, "solo8": 0.21}
"""Trunk height at the default pose [m], with zero action (docs/robots.md); G1 falls then: its height at reset."""

HEIGHT_BAND = 0.20
"""How far the trunk of a walking robot may be from there [-]."""

PAPERS_AGENTS = ("transformer", "mlp", "nm_transformer", "nm_mlp", "body_transformer")
"""Agents of the paper's main tables."""

ENGINES = {"newton_mjwarp": "Newton", "ovphysx": "PhysX (ovphysx)", "mujoco": "plain MuJoCo"}
"""What the page calls the engines."""

GROUNDS = {"flat": "flat ground", "perlin": "tracks"}
"""What the page calls the grounds."""

MEANING = {
    "robots of each": "Fewer robots widen the intervals; they shift no figure.",
    "simulator": "Contacts, joint limits and motors are solved otherwise than in Isaac Gym; the comparison of engines "
    "above shows how much these policies mind that.",
    "track": "Flat ground is easier to walk on than the paper's noise: our rates of reaching a radius are favoured.",
}
"""What a departure may do to a figure, by the word that it begins with."""


@dataclass(frozen=True)
class RobotResults:
    """Everything that the page says of one robot."""

    robot: str
    home: str
    """Engine of the main tables."""
    studies: Mapping[str, Study]
    """Evaluations of all policies, by engine."""
    mujoco: Sequence[Study] = ()
    """One for each policy that met plain MuJoCo."""
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What ``models.json`` says, by SHA-256."""
    curves: Mapping[str, str] = field(default_factory=dict)
    """Pictures of learning curves by policy, relative to the page."""
    ground: str = ""
    """Ground of this section, where a robot's policies were trained on several."""

    @property
    def title(self) -> str:
        """Heading of the section."""
        return display(self.robot) + (f", {GROUNDS.get(self.ground, self.ground)}" if self.ground else "")

    def at_home(self, result: PolicyResult) -> bool:
        """Whether a policy was trained on the ground of this section.

        Args:
            result: The policy.

        Returns:
            True if so or if nobody knows, and where there is only one ground.
        """
        return not self.ground or (result.about.get("terrain") or "flat") == self.ground

    @property
    def study(self) -> Study:
        """The evaluation of the main tables."""
        return self.studies[self.home]


def section_name(robot: str, ground: str) -> str:
    """Name of a section's folder and of its notes.

    Args:
        robot: The robot.
        ground: Its ground, empty where there is only one.

    Returns:
        The robot's name, with the ground if that is not flat.
    """
    return robot if ground in ("", "flat") else f"{robot}_{ground}"


def results_page(results: Sequence[RobotResults], about: Mapping[str, str], notes: Mapping[str, str]) -> str:
    """Writes the page.

    Args:
        results: One for each robot, and for each ground where its policies were trained on several.
        about: ``command``, ``time`` and ``commit``.
        notes: What a person has to say, by section (:func:`section_name`); explanations of misses belong there.

    Returns:
        Markdown.
    """
    studies = [one.study for one in results]
    made_up = sorted({str(study.about["note"]) for study in studies if study.about.get("note")})
    bars = [(one.title, bar) for one in results for bar in bars_of(one.study)]
    parts = [
        "# Results",
        "",
        f"Made by `{about['command']}` at commit {about['commit']}, {about['time']}. Not edited by hand: what people "
        "have to say stands in `config/results_notes.yaml`.",
        "",
        *(f"**{note}**\n" for note in made_up),
        "What the words mean, and how sure a figure is: [evaluation.md](evaluation.md). Figures in brackets are 95% "
        "intervals. All policies of a robot act by their mean action and meet the same robots, starts and faults. "
        "`transformer` is the paper's Trf-UMC, `mlp` its MLP-UMC, `nm_` before a name its normal training (NM: no "
        "faults, no mask, no flag), `body_transformer` its BodyTrf.",
        "",
        "## Where the bars stand",
        "",
        *_bars(bars),
        "",
        "## What was evaluated",
        "",
        *_policies(results),
        "",
    ]
    for one in results:
        parts += _robot(one, notes.get(section_name(one.robot, one.ground), ""))
    parts += ["## What has not been run", "", *_missing(results), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _bars(bars: Sequence[tuple[str, Bar]]) -> list[str]:
    if not bars:
        return [
            "No pair of a UMC policy of Stage 2 and its baseline was evaluated: there is nothing to hold against them."
        ]
    met, known = sum(bar.met is True for _, bar in bars), sum(bar.met is not None for _, bar in bars)
    lines = [
        f"UMC against normal training (NM) of the same network, and against the paper: {met} of {known} bars are met.",
        "",
        "| robot | pair | bar | UMC | compared with | |",
        "|---|---|---|---:|---:|---|",
    ]
    return lines + [
        f"| {title} | {bar.pair} | {bar.demand} | {bar.first} | {bar.second} | {bar.verdict} |" for title, bar in bars
    ]


def _policies(results: Sequence[RobotResults]) -> list[str]:
    lines = [
        "| robot | policy | stage | recipe | seed | iterations | envs | trained on | commit | SHA-256 | simulated at |",
        "|---|---|---:|---|---:|---:|---:|---|---|---|---|",
    ]
    for one in results:
        for result in filter(one.at_home, one.study.policies):
            entry = one.entries.get(str(result.about.get("sha256")), {})
            trained = entry.get("trained") or {}
            about = result.about
            place = ", ".join(
                filter(
                    None, [_engine(str(about.get("physics", ""))), str(about.get("terrain", "")), trained.get("device")]
                )
            )
            iterations = about["iteration"] + 1 if isinstance(about.get("iteration"), int) else "-"
            cells = [
                display(one.robot), result.label, about.get("stage", "-"), entry.get("recipe") or "-",
                about.get("seed", "-"), iterations, trained.get("num_envs") or "-", place or "-",
                str(entry.get("commit") or "-")[:10], str(about.get("sha256", "-"))[:12],
                str(about.get("simulated") or "-")[:10],
            ]  # fmt: skip
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _robot(one: RobotResults, note: str) -> list[str]:
    study = one.study
    estimates = Estimates(study)
    about = study.about
    ground = "on tracks of Perlin noise" if study.protocol.track else "on flat ground"
    lines = [
        f"## {one.title}",
        "",
        f"Protocol {study.protocol.name} on {_engine(str(about.get('physics', '')))}, {ground}, "
        f"{about.get('robots_per_cell', '?')} robots of each scenario and setting.",
        "",
        *([note.strip(), ""] if note else []),
        main_table(estimates).markdown(),
        *(scenario_table(estimates, group).markdown() for group in estimates.groups),
        left_out_table(estimates).markdown(),
    ]
    lines += [*_ends(one), *_gaits(one)]
    if one.curves:
        lines += ["### Learning curves", ""]
        for label, picture in one.curves.items():
            lines += [f"![{label}: reward, episode length and action noise over the iterations]({picture})", ""]
    return [*lines, *_engines(one), *_differences(one)]


def _ends(one: RobotResults) -> list[str]:
    study, standing = one.study, STANDING_HEIGHT.get(one.robot)
    if standing is None:
        return []
    low = (1.0 - HEIGHT_BAND) * standing
    rows = []
    for result in study.policies:
        shares = ends(study, result, HARD, low)
        if shares is not None:
            rows.append(f"| {result.label} | {' | '.join(f'{shares[name]:.0%}' for name in ENDS)} |")
    if not rows:
        return []
    return [
        f"### How they end in scenarios {HARD[0]} to {HARD[-1]}",
        "",
        f"*Sunk*: not failed, but its trunk was on average below {low:.2f} m after the fault, {1.0 - HEIGHT_BAND:.0%} "
        "of standing height: it kneels or lies on its legs. *Stayed*: on its feet, and not "
        f"{study.protocol.radii[0]:g} m further.",
        "",
        f"| policy | {' | '.join(ENDS)} |",
        "|---|---:|---:|---:|---:|",
        *rows,
        "",
    ]


def _gaits(one: RobotResults) -> list[str]:
    rows = []
    standing = STANDING_HEIGHT.get(one.robot)
    for result in filter(one.at_home, one.study.policies):
        entry = one.entries.get(str(result.about.get("sha256")), {})
        gait = (entry.get("metrics") or {}).get("healthy")
        if not gait:
            continue
        height = gait["trunk_height"]
        share = height / standing if standing else float("nan")
        verdict = "yes" if abs(share - 1.0) <= HEIGHT_BAND else "**no**"
        rows.append(
            f"| {result.label} | {gait['forward_speed']:.2f} / {gait['command']:.2f} | {height:.3f} | {share:.0%} | "
            f"{verdict} | {gait['falls']} of {gait['robots']} | {gait['standing']} | "
            f"{gait['mean_feet_in_contact']:.2f} |"
        )
    if not rows:
        return []
    return [
        "### Healthy gaits",
        "",
        "| policy | speed / command [m/s] | trunk height [m] | of standing height | within 20% | falls | stood still "
        "| feet on the ground |",
        "|---|---:|---:|---:|---|---:|---:|---:|",
        *rows,
        "",
    ]


def _engines(one: RobotResults) -> list[str]:
    others = [engine for engine in one.studies if engine != one.home]
    if not others and not one.mujoco:
        return []
    reached = f"reached@{RADIUS.get(one.robot, DEFAULT_RADIUS):g}"
    lines = [
        "### The same policies on other engines",
        "",
        f"Averages over all scenarios. The drop is that of {reached} against the engine that a policy was trained on, "
        "in points; below zero it does better there."
        + (" Plain MuJoCo knows flat ground only." if one.mujoco and one.study.protocol.track else ""),
        "",
        f"| policy | engine | {reached} | failed | drop | simulated at |",
        "|---|---|---:|---:|---:|---|",
    ]
    for result in one.study.policies:
        found = [(engine, study, _same(study, result)) for engine, study in one.studies.items()]
        found += [("mujoco", study, _same(study, result)) for study in one.mujoco]
        measured = {engine: (study, same) for engine, study, same in found if same is not None}
        trained = str(result.about.get("physics") or one.home)
        base = None if trained not in measured else rate(*measured[trained], reached, _all(measured[trained][0]))
        for engine, (study, same) in measured.items():
            here = rate(study, same, reached, _all(study))
            failed = rate(study, same, "failed", _all(study))
            own = engine == trained
            drop = "-" if own or base is None or here is None else f"{round(100 * (base.value - here.value)):+d}"
            name = f"{_engine(engine)}{' (trained on it)' if own else ''}"
            commit = str(same.about.get("simulated") or "-")[:10]
            lines.append(f"| {result.label} | {name} | {percent(here)} | {percent(failed)} | {drop} | {commit} |")
    return [*lines, ""]


def _all(study: Study) -> tuple[Any, ...]:
    return study.protocol.scenarios


def _same(study: Study, result: PolicyResult) -> PolicyResult | None:
    wanted = result.about.get("sha256")
    return next((one for one in study.policies if one.about.get("sha256") == wanted), None)


def _differences(one: RobotResults) -> list[str]:
    lines = ["### What differs from the paper", ""]
    for text in departures(one.study):
        meaning = next((words for start, words in MEANING.items() if text.startswith(start)), "")
        lines.append(f"- Evaluation: {text}. {meaning}".rstrip())
    paper = paper_settings(one.robot, "training")
    for result in filter(one.at_home, one.study.policies):
        entry = one.entries.get(str(result.about.get("sha256")), {})
        trained = entry.get("trained") or {}
        said = []
        iteration = result.about.get("iteration")
        if isinstance(iteration, int) and iteration + 1 != STAGE_ITERATIONS:
            said.append(f"{iteration + 1:,} iterations in its last stage instead of {STAGE_ITERATIONS:,} in each")
        if trained.get("num_envs") not in (None, paper["num_envs"]):
            said.append(f"{trained['num_envs']:,} envs instead of {paper['num_envs']:,}")
        if one.robot == "a1" and result.about.get("terrain") == "flat":
            said.append("flat ground instead of tracks")
        if said:
            lines.append(f"- Training of {result.label}: {'; '.join(said)}.")
    lines.append(
        "- Robots are built from public descriptions, rewards from public tasks; what differs there stands in "
        "[tasks.md](tasks.md)."
    )
    return [*lines, ""]


def _missing(results: Sequence[RobotResults]) -> list[str]:
    lines = []
    for robot in dict.fromkeys(one.robot for one in results):
        there = set()
        for result in (result for one in results if one.robot == robot for result in one.study.policies):
            spec = agent_spec(str(result.about.get("agent", "")))
            if spec is not None and result.about.get("stage") == spec.stages[-1]:
                there.add(spec.name)
        gone = [agent for agent in PAPERS_AGENTS if agent not in there]
        if gone:
            lines.append(f"- {display(robot)}: the paper's {', '.join(gone)}.")
    known = {one.robot for one in results}
    lines += [f"- {display(robot)}: nothing." for robot in STANDING_HEIGHT if robot not in known]
    specs = [agent_spec(str(result.about.get("agent", ""))) for one in results for result in one.study.policies]
    if not any(spec is not None and spec.purpose.startswith("ablation") for spec in specs):
        lines.append("- The paper's ablations stand in [ablations.md](ablations.md): of A1's MLP, one run each.")
    return lines or ["Everything of the paper's main tables was run."]


def _engine(name: str) -> str:
    return ENGINES.get(name, "plain MuJoCo" if name.startswith("mujoco ") else name)


def display(robot: str) -> str:
    """A robot's name as people write it."""
    return robot.upper() if len(robot) == 2 else robot.capitalize()
