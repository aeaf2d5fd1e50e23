# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of a study hold the figures that they claim to show."""

from dataclasses import replace

import pytest
import torch
from made_up_study import made_up_study
from umc.evaluation.breakdown import break_down
from umc.evaluation.estimates import Estimates
from umc.evaluation.metrics import Outcome
from umc.evaluation.report import plots


@pytest.fixture(scope="module")
def study():
    return made_up_study(members=8, vary_severity=True)


@pytest.fixture(scope="module")
def estimates(study):
    return Estimates(study, resamples=100)


@pytest.fixture(scope="module")
def parts(study):
    return {result.label: break_down(study, result) for result in study.policies}


def test_bars_are_as_high_as_the_figures(estimates):
    upper, lower = plots.scenario_bars(estimates).axes
    for axis, metric in ((upper, "reached@3"), (lower, "failed")):
        bars = sorted(axis.patches, key=lambda bar: bar.get_x())
        wanted = [
            100 * estimates.group(group, metric, place).value
            for place in [*range(8), None]
            for group in estimates.groups
        ]
        assert [bar.get_height() for bar in bars] == pytest.approx(wanted)


def told(study, sources):
    """The first policy of a study, with one source of fault reports after another."""
    first = study.policies[0]
    named = [
        replace(first, label=f"a, {text}", group=f"a, {text}", about={**first.about, "sha256": "a", "detection": text})
        for text in sources
    ]
    return replace(study, policies=tuple(named))


def test_each_error_of_an_oracle_has_a_curve_from_the_oracle_without_errors_on(study):
    sources = (
        "oracle",
        "corrupted_oracle:delay=25",
        "corrupted_oracle:delay=10",
        "corrupted_oracle:missed=0.5",
        "none",
    )
    figure = plots.cost_curves(Estimates(told(study, sources), resamples=50))
    delay, missed = figure.axes[:2]
    assert [list(axis.lines[0].get_xdata()) for axis in (delay, missed)] == [[0.0, 10.0, 25.0], [0.0, 0.5]]
    assert plots.cost_curves(Estimates(told(study, ("oracle", "none")), resamples=50)) is None


def test_an_error_beside_another_one_has_no_point_of_the_oracle():
    both = [f"corrupted_oracle:missed=0.2,delay={steps}" for steps in (5, 10)]
    (found,) = plots.varied_errors(["oracle", *both]).items()
    assert found == (("delay", ", missed 0.2"), {1: 5.0, 2: 10.0})


def test_curves_stand_beside_the_papers(estimates):
    (axis,) = plots.reached_curves(estimates, {"Trf-UMC": (97, 95, 91, 84, 72, 2)}).axes
    dashed = [line for line in axis.lines if line.get_linestyle() == "--"]
    assert [list(line.get_ydata()) for line in dashed] == [[97, 95, 91, 84, 72]]
    assert len(axis.lines) == 1 + 3
    wanted = [100 * estimates.group("example A", f"reached@{k}").value for k in range(1, 6)]
    assert list(axis.lines[1].get_ydata()) == pytest.approx(wanted)


def test_survival_curves_hold_the_share_that_has_not_fallen_yet(study):
    figure = plots.survival_curves(study)
    assert len(figure.axes) == 8
    steps = 600  # every setting watches its robots for longer
    for scenario, axis in zip(study.protocol.scenarios, figure.axes, strict=True):
        for result, line in zip(study.policies, axis.lines, strict=True):
            episodes = result.run.episodes
            mine = study.scenario_rows(result, scenario) & (episodes.outcome <= Outcome.FAILED)
            fell = (episodes.outcome == Outcome.FAILED) & (episodes.steps_after_onset < steps)
            before = line.get_xdata() <= steps * study.step_dt + 1e-9
            assert line.get_ydata()[before][-1] == pytest.approx(100 * (1 - fell[mine].float().mean()), abs=1e-3)
    # robots that were evaluated, and the step of their fall
    outcomes = (Outcome.UP, Outcome.FAILED, Outcome.FAILED, Outcome.FELL_BEFORE_ONSET, Outcome.NON_FINITE, Outcome.UP)
    outcome, steps = torch.tensor([int(one) for one in outcomes]), torch.tensor([10, 4, 0, 0, 0, 7])
    episodes = replace(study.policies[0].run.episodes, outcome=outcome, steps_after_onset=steps)
    steps, fell = plots.steps_standing(episodes, torch.arange(6) < 5)
    assert (steps.tolist(), fell.tolist()) == ([10, 5, 1], [False, True, True])


def test_the_heat_map_shows_each_joint_in_each_scenario_that_breaks_it(study, parts):
    figure = plots.joint_heatmap(study, "example A", [parts["example A"]])
    for axis, metric in zip(figure.axes[:2], ("reached@3", "failed"), strict=True):
        shown = axis.images[0].get_array()
        assert shown.shape == (12, 8)  # scenarios 1 to 7 and the average
        assert axis.images[0].get_clim() == (shown.min(), shown.max())  # few falls are seen, too
        table = {(one.slice.name, one.scenario): one for one in parts["example A"] if one.slice.by == "joint"}
        assert shown[2, 3] == pytest.approx(100 * table["FL_calf_joint", 4].rates[metric].value)
        assert shown[2, 7] == pytest.approx(100 * table["FL_calf_joint", None].rates[metric].value)


def test_differences_are_from_the_first_policy(estimates):
    left, right = plots.paired_differences(estimates).axes
    marks = [line for line in right.lines if line.get_marker() in plots.MARKERS]
    assert len(marks) == 2 * 9
    wanted = 100 * estimates.difference("example A", "example B", "failed").value
    assert marks[8].get_xdata()[0] == pytest.approx(wanted)
    faces = [line.get_markerfacecolor() for line in left.lines if line.get_marker() in plots.MARKERS]
    p = [estimates.difference("example A", "example B", "reached@3", place).p for place in [*range(8), None]]
    assert [face != "white" for face in faces[:9]] == [one < 0.05 for one in p]


def test_a_single_policy_has_no_differences_and_the_same_severity_no_sweep():
    study = made_up_study(members=2, policies=[("a", 1.0)])
    assert plots.paired_differences(Estimates(study, resamples=10)) is None
    parts = {"a": break_down(study, study.policies[0])}
    assert plots.severity_sweep(study, parts, {}) is None


def test_the_sweep_goes_from_the_hardest_to_the_mildest(study, parts):
    figure = plots.severity_sweep(study, parts, {"effort": "[N*m]"})
    lines = figure.axes[1].lines
    assert len(lines) == 3
    assert list(lines[0].get_xdata()) == sorted(lines[0].get_xdata())
    first, second, third = (line.get_xdata()[0] for line in lines)
    assert first < second < third  # side by side, and each on its interval
    bars = [segment[0, 0] for bars in figure.axes[1].collections for segment in bars.get_segments()]
    assert bars == [x for line in lines for x in line.get_xdata()]
    ends = [segment[:, 1] for bars in figure.axes[1].collections for segment in bars.get_segments()]
    around = list(zip(ends, (y for line in lines for y in line.get_ydata()), strict=True))
    assert all(low <= y <= high for (low, high), y in around)
    assert any(low < y < high for (low, high), y in around)
    assert lines[0].get_ydata()[0] > lines[0].get_ydata()[-1]  # weaker motors fall more
    assert "[N*m]" in figure.axes[1].get_xlabel()


@pytest.mark.parametrize("key", ["model", "reads"])
def test_policies_of_one_file_with_other_descriptions_have_a_curve_each(study, key):
    plain = told(study, ("corrupted_oracle:delay=10", "corrupted_oracle:delay=25")).policies
    other = tuple(replace(one, label=f"other {one.label}", about={**one.about, key: "other"}) for one in plain)
    both = Estimates(replace(study, policies=(*plain, *other)), resamples=50)
    upper, lower = plots.cost_curves(both).axes
    assert [list(line.get_xdata()) for axis in (upper, lower) for line in axis.lines] == [[10.0, 25.0]] * 4


def test_a_name_with_dollars_is_drawn_as_it_is(study):
    name = r"$\nothing$"  # no formula that can be drawn
    named = replace(study.policies[1], label=name, group=name)
    named = replace(study, policies=(named, *study.policies[::2]))
    figure = plots.paired_differences(Estimates(named, resamples=50))
    assert plots.image(figure, "svg")
    assert figure.axes[0].get_xlabel() == f"minus {name} [percentage points]"
    assert plots.image(plots.survival_curves(named), "svg")  # whose legend has it
