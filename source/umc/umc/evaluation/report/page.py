# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""One HTML page that holds everything and asks nothing of a network or a script."""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from umc.evaluation.estimates import Estimates
from umc.evaluation.report.paper import departures
from umc.evaluation.report.plots import middle
from umc.evaluation.report.renderers import Table
from umc.evaluation.report.screen import versions

MANY_LEFT_OUT = 0.05
"""Share of robots left out above which the summary says so."""

FEW_JUDGED = 30
"""Robots of a scenario below which the summary says so: an interval of a rate is then about 35 points wide."""

FEW_SEEDS = 5
"""Training seeds below which the summary says so: the interval is wide and rests on the shape of the scatter."""

CSS = """
:root { color-scheme: light; --ink: #1d1d1f; --faint: #6b6b70; --line: #d9d9de; --soft: #f5f6f8; --accent: #0072b2; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 2rem 1.4rem 5rem; color: var(--ink); background: #fff;
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.6rem 0 .7rem; padding-top: .9rem; border-top: 1px solid var(--line); }
p, ul { margin: .5rem 0; max-width: 78ch; }
nav { margin: 1rem 0 0; font-size: .9rem; } nav a { margin-right: 1.1rem; white-space: nowrap; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
.lead { color: var(--faint); } .care { border-left: 3px solid #e69f00; background: #fdf7ea; padding: .5rem 1rem; }
.table { margin: 1.1rem 0 1.6rem; overflow-x: auto; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0 0 .45rem; }
thead th { border-top: 1.5px solid var(--ink); border-bottom: 1px solid var(--ink); font-weight: 600; text-align: right;
  vertical-align: bottom; }
th, td { padding: .25rem .7rem; text-align: right; } th:first-child { text-align: left; padding-left: .2rem; }
tbody th { font-weight: 400; white-space: nowrap; } tbody tr:last-child > * { border-bottom: 1.5px solid var(--ink); }
tbody tr:nth-child(even) { background: var(--soft); } tr.ruled > * { border-top: 1px solid var(--ink); }
tr.paper { color: var(--faint); } tr.average { font-weight: 600; } tr.average th { font-weight: 600; }
td { white-space: nowrap; } td small { color: var(--faint); font-weight: 400; } th i { font-style: normal; }
.note { color: var(--faint); font-size: .84rem; margin: .4rem 0 0; }
figure { margin: 1.2rem 0 1.8rem; } figure img { max-width: 100%; height: auto; }
figcaption { color: var(--faint); font-size: .86rem; max-width: 78ch; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; font-size: .9rem; max-width: 100%; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .8rem 1rem; overflow-x: auto; font-size: .84rem; border-radius: 4px; }
@media print { nav { display: none; } body { max-width: none; padding: 0; font-size: 11px; } .table, figure
  { break-inside: avoid; } }
"""
"""The page's looks."""

TITLES = {
    "num_envs": "robots of a cell in the original",
    "steps": "episode [env steps]",
    "num_joints": "faulty joints, from and to",
    "settings": "settings (onset in env steps)",
    "command": "command x [m/s], y [m/s], yaw [rad/s]",
    "radii": "radii [m]",
    "track": "terrain track [m]",
}
"""What the page calls fields of the protocol."""

METHOD = (
    ("Judged", "Robots that stood when the fault set in. Every rate is a share of them."),
    (
        "Left out",
        "Robots that fell before onset, whose physics became non-finite, or whose episode ended before onset. They say"
        " nothing about the policy under faults and are counted on lines of their own.",
    ),
    (
        "reached@k",
        "Judged robots that went further than k metres, horizontally, from where they stood at onset, at any time until"
        " the end, and did not fall.",
    ),
    ("failed", "Judged robots that fell after onset."),
    (
        "Average",
        "The paper's: robots of all settings together within a scenario, then the mean over scenarios, each weighing"
        " the same. Scenario 8, healthy robots, is one of them.",
    ),
    (
        "Rates, one policy",
        "Wilson's 95% interval. In averages over scenarios a robot that goes through all of them counts once: the"
        " effective count comes from the variance between robots.",
    ),
    (
        "Other means",
        "Percentile bootstrap over robots: they are drawn anew within each fault seed, and a robot that is drawn is"
        " drawn in all scenarios and settings of its seed and under all policies.",
    ),
    (
        "Training seeds",
        "Where a group holds several policies, the mean over them, with a bootstrap over policies and robots, widened"
        " as Student's t asks for so many policies.",
    ),
    (
        "Differences",
        "Second minus first over the same robots: same start, same faulty joints, same onset. Paired bootstrap;"
        " p is two-sided and not corrected for the number of comparisons.",
    ),
    (
        "Recovery",
        "A robot has recovered when its forward speed, averaged over about half a second, is back at 80% of its own"
        " speed before onset and stays there to the end. Recovery time is the mean over those that did.",
    ),
    (
        "Energy per metre",
        "Mechanical work of the motors after onset, negative power left out, of all judged robots, over the sum of"
        " their greatest distances from the place of onset.",
    ),
)
"""What the figures mean."""


def summary(estimates: Estimates) -> tuple[list[str], list[str]]:
    """The findings in a few sentences, and what speaks against them."""
    study, groups = estimates.study, estimates.groups
    key = middle(study.protocol.radii)
    radius = key.partition("@")[2]
    found = []
    for name in groups:
        reached, failed = estimates.group(name, key), estimates.group(name, "failed")
        if reached is None or failed is None:
            found.append(f"{name}: nobody stood at onset.")
            continue
        found.append(
            f"{name}: {_percent(reached)} went beyond {radius} m after onset without a fall, {_percent(failed)} fell."
        )
    first, *others = groups
    for second in others:
        words = []
        for metric in (key, "failed"):
            one = estimates.difference(first, second, metric)
            if one is not None:
                p = "p < 0.001" if one.p < 0.001 else f"p = {one.p:.3f}"
                span = f"[{100 * one.low:+.0f}, {100 * one.high:+.0f}]"
                words.append(f"{metric} {100 * one.value:+.0f} points {span}, {p}")
        if words:
            found.append(f"{second} against {first}, same robots: {'; '.join(words)}.")
    return found, _cares(estimates)


def _cares(estimates: Estimates) -> list[str]:
    study, found = estimates.study, []
    if study.about.get("note"):
        found.append(str(study.about["note"]))
    if study.about.get("quick"):
        found.append("This is a quick run: its episodes are far too short for figures.")
    for result in study.policies:
        scores = [score for _, score in study.scenario_scores(result)]
        judged, envs = sum(score.judged for score in scores), sum(score.envs for score in scores)
        if judged < (1.0 - MANY_LEFT_OUT) * envs:
            found.append(
                f"{result.label}: {envs - judged} of {envs} robots are left out; see the table of robots judged."
            )
        if min(score.judged for score in scores) < FEW_JUDGED:
            few = min(score.judged for score in scores)
            found.append(f"{result.label}: as few as {few} robots were judged in a scenario; look at the intervals.")
    alone = [name for name, members in estimates.groups.items() if len(members) == 1]
    if alone:
        found.append(
            f"One training each ({', '.join(alone)}): intervals over robots say nothing about another training."
        )
    for name, members in estimates.groups.items():
        if 1 < len(members) < FEW_SEEDS:
            found.append(f"{name}: {len(members)} trainings, which know little of what another would bring.")
    return found


def html_page(
    estimates: Estimates,
    tables: Sequence[Table],
    pictures: Sequence[tuple[str, bytes, str]],
    files: Mapping[str, str],
) -> str:
    """The page."""
    study = estimates.study
    protocol, about = study.protocol, study.about
    findings, cares = summary(estimates)
    title = f"{protocol.robot.upper()} under faults: {', '.join(estimates.groups)}"
    lead = (
        f"Protocol {protocol.name}, {len(protocol.scenarios)} scenarios, {len(protocol.settings)} settings, "
        f"{estimates.num_robots} robots; {len(study.policies)} policies met the same faults."
    )
    care = f'<div class="care"><b>Read with care</b>{_list(cares)}</div>' if cares else ""
    main, *rest = tables
    differs = [table for table in rest if table.key.startswith("difference_")]
    slices = [table for table in rest if table.key.startswith("by_")]
    others = [table for table in rest if table not in differs and table not in slices]
    settings = "; ".join(_setting(one) for one in protocol.settings)
    plain = {**asdict(protocol), "settings": settings}
    conditions = {TITLES.get(key, key): value for key, value in plain.items()}
    run = {key: value for key, value in about.items() if key not in ("command_line", "versions", "note")}
    left = departures(study)
    departed = f"<p>Not as in the paper:</p>{_list(left)}" if left else ""
    policies = "".join(f"<h3>{html.escape(one.label)}</h3>{_terms(one.about)}" for one in study.policies)
    command = about.get("command_line")
    how = f"<pre>{html.escape(str(command))}</pre>" if command else "<p>The command line was not recorded.</p>"
    sections = [
        ("summary", "Summary", f"{_list(findings)}{care}{main.html()}"),
        ("method", "What the figures mean", _terms(dict(METHOD))),
        ("conditions", "Conditions", f"{_terms(conditions)}{departed}<h3>Run</h3>{_terms(run)}"),
        ("pictures", "Pictures", "".join(_picture(*one) for one in pictures)),
        ("tables", "Tables", "".join(table.html() for table in others)),
        ("differences", "Differences between policies", "".join(table.html() for table in differs)),
        ("parts", "Broken down", "".join(table.html() for table in slices)),
        (
            "reproduce",
            "How to make this again",
            f"{how}<h3>Versions</h3>{_terms(about.get('versions') or versions())}{policies}"
            f"<h3>Files beside this page (SHA-256)</h3>{_terms(files)}",
        ),
    ]
    sections = [one for one in sections if one[2]]
    links = "".join(f'<a href="#{key}">{name}</a>' for key, name, _ in sections)
    body = "\n".join(f'<section id="{key}"><h2>{name}</h2>\n{text}\n</section>' for key, name, text in sections)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{CSS}</style></head>\n<body>\n"
        f'<header><h1>{html.escape(title)}</h1><p class="lead">{html.escape(lead)}</p><nav>{links}</nav></header>\n'
        f"<main>\n{body}\n</main>\n</body></html>\n"
    )


def _percent(found: Any) -> str:
    return f"{100 * found.value:.0f}% [{100 * found.low:.0f}, {100 * found.high:.0f}]"


def _setting(setting: Any) -> str:
    return setting.name + ("" if setting.perlin_seed is None else f", terrain {setting.perlin_seed}")


def _list(lines: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"


def _terms(values: Mapping[str, Any]) -> str:
    rows = (
        f"<dt>{html.escape(_words(key))}</dt><dd>{html.escape(_plain(value))}</dd>" for key, value in values.items()
    )
    return f"<dl>{''.join(rows)}</dl>"


def _words(key: str) -> str:
    return key.replace("_", " ")


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_plain(one) for one in value) or "none"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _picture(name: str, svg: bytes, caption: str) -> str:
    # as an image of its own, so that the names inside several drawings do not meet
    data = base64.b64encode(svg).decode()
    words = html.escape(caption)
    return (
        f'<figure id="figure-{html.escape(name)}"><img alt="{words}" src="data:image/svg+xml;base64,{data}">'
        f"<figcaption>{words}</figcaption></figure>"
    )
