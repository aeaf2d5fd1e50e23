# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The results page on made-up studies: criteria, engines, what is missing, and the commands that simulate."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fresh_policy import write_fresh
from made_up_results import SHA, changed, entry, made_up, publish_made_up, simulate_made_up
from umc.evaluation.checkpoints import Checkpoint
from umc.evaluation.metrics import Outcome
from umc.evaluation.study import load_study, save_study
from umc.rl.checkpoint import checkpoint_info, read_checkpoint
from umc.rl.pretrained import MODELS, pretrained_folder
from umc.utils.config import read_yaml
from umc.utils.errors import UmcError
from umc.utils.io import sha256

from tools.results_page import __main__ as results
from tools.results_page import without_oracle
from tools.results_page.acceptance import criteria_of, ends, inert_reading, main_rates, paper_rates, rate
from tools.results_page.page import RobotResults, results_page
from tools.results_page.pictures import COLORS, overview, section_bars

ABOUT = {"command": "tools.results_page", "time": "2026-11-21", "commit": "abc"}


def with_outcomes(study, failed, reached):
    """The study with fixed rates: by policy, shares of each scenario's robots that fail or go 4 m."""

    def fixed(one):
        run, outcome = one.run, one.run.episodes.outcome.clone()
        distance = torch.zeros_like(run.episodes.distance)
        for scenario in range(8):
            rows = (run.cell % 8 == scenario).nonzero()[:, 0]
            outcome[rows] = int(Outcome.UP)
            count = round(failed[one.label](scenario + 1) * len(rows))
            outcome[rows[:count]] = int(Outcome.FAILED)
            far = round(reached[one.label](scenario + 1) * len(rows))
            distance[rows[len(rows) - far :]] = 4.0
        return changed(one, outcome=outcome, distance=distance)

    return replace(study, policies=tuple(map(fixed, study.policies)))


def verdicts(study, paper=False):
    """Which criteria are met: those against the baseline, or those against the paper."""
    return [criterion.met for criterion in criteria_of(study) if ("paper" in criterion.pair) == paper]


def constant(value):
    return lambda _: value


@pytest.mark.parametrize(
    ("failed", "reached", "wanted", "members"),
    [
        ((0.1, 0.5), (0.8, 0.3), [True, True, True, True], 40),
        ((0.1, 0.25), (0.8, 0.65), [True, False, True, True], 40),  # half as many fall; 15 points further is too little
        ((0.3, 0.45), (0.6, 0.3), [False, True, True, True], 40),  # neither 20 points nor half
        ((0.0, 0.0), (0.9, 0.2), [False, True, True, True], 40),  # half of nothing is no gain
        ((0.5, 0.1), (0.2, 0.8), [False, False, False, False], 40),
        ((0.33, 0.67), (0.67, 0.33), [False, False, True, True], 2),  # 6 robots: the intervals overlap
    ],
)
def test_criteria_on_known_rates(failed, reached, wanted, members):
    rates = [{"mlp": constant(ours), "nm_mlp": constant(theirs)} for ours, theirs in (failed, reached)]
    assert verdicts(with_outcomes(made_up(members=members), *rates)) == wanted


def test_the_hard_scenarios_and_the_healthy_one_have_their_own_criteria():
    failed = {"mlp": lambda n: 0.0 if n in (2, 3, 4) else 1.0 if n == 8 else 0.9, "nm_mlp": constant(0.5)}
    reached = {"mlp": lambda n: 0.0 if n == 8 else 0.9, "nm_mlp": constant(0.1)}
    study = with_outcomes(made_up(members=40), failed, reached)
    assert verdicts(study) == [True, True, False, False]
    ours = study.policies[0]
    assert rate(study, ours, "failed", (2, 3, 4)).value == 0.0
    assert rate(study, ours, "failed", (1, 5)).value == pytest.approx(0.9, abs=0.01)
    assert rate(study, ours, "reached@7", (2,)) is None
    assert rate(study, ours, "failed", (9,)) is None


@pytest.mark.parametrize(("agent", "paper"), [("transformer", "91%, failed 2%"), ("mlp", "83%, failed 4%")])
def test_a_policy_is_compared_with_the_paper_s_of_the_same_network(agent, paper):
    study = made_up(policies=((agent, 2.6),), members=40)
    good = with_outcomes(study, {agent: constant(0.0)}, {agent: constant(1.0)})
    (criterion,) = criteria_of(good)
    assert (criterion.met, criterion.theirs) == (True, paper)
    poor = with_outcomes(study, {agent: constant(0.1)}, {agent: constant(0.9)})
    assert verdicts(poor, paper=True) == [False]
    flat = replace(good, protocol=replace(good.protocol, track={}))
    assert verdicts(flat, paper=True) == []  # the paper has A1 on tracks alone


def test_a_baseline_of_the_paper_is_shown_and_has_no_criteria():
    study = made_up(policies=(("mt_ftc", 2.6),))  # it is trained in Stage 2, too
    radii = (0.5, 1.0, 1.5, 2.0, 2.5)
    study = replace(study, protocol=replace(study.protocol, robot="solo8", track={}, radii=radii))
    assert paper_rates(study, study.policies[0]) == (30, 46)
    assert criteria_of(study) == []


def test_torque_limits_without_effect_change_their_scenarios_alone():
    """Robots of scenarios 3 and 6 are replaced by those that were simulated without such limits."""
    agents = {"mlp": constant(0.0), "nm_mlp": constant(1.0)}
    everywhere = (dict.fromkeys(agents, constant(share)) for share in (1.0, 0.0))
    fall = with_outcomes(made_up(members=40), *everywhere)
    measured = with_outcomes(made_up(members=40, seed=1), agents, {"mlp": constant(1.0), "nm_mlp": constant(0.0)})
    rows = [torch.isin(one.run.cell % 8, torch.tensor([2, 5])) for one in measured.policies]
    cells = {2: 0, 5: 1}
    policies = []
    for one, chosen in zip(measured.policies, rows, strict=True):
        run = one.run.select(chosen)
        cell = run.cell // 8 * 2 + torch.tensor([cells[int(number) % 8] for number in run.cell])
        policies.append(replace(one, run=replace(run, cell=cell)))
    severity = {**fall.protocol.severity, "effort": {"fraction": 1.0}}
    inert = replace(
        measured, policies=tuple(policies), protocol=replace(fall.protocol, scenarios=(3, 6), severity=severity)
    )
    merged = inert_reading(fall, inert)
    mlp, nm_mlp = merged.policies
    assert [rate(merged, mlp, "failed", [number]).value for number in range(1, 9)] == [1, 1, 0, 1, 1, 0, 1, 1]
    assert rate(merged, mlp, "reached@3", range(1, 9)).value == 0.25
    assert rate(merged, nm_mlp, "failed", range(1, 9)).value == 1.0
    assert merged.protocol == replace(fall.protocol, severity=severity)
    page = results_page([RobotResults("a1", "ovphysx", {"ovphysx": fall}, inert=inert)], ABOUT, {})
    assert "| A1 | mlp | 0, 100 | 0, 100 | 0, 100 | 100, 0 | 100, 0 | 25, 75 | 83, 4 |" in page
    assert "all scenarios, torque limits without effect: reached@3 and failed" in page
    assert "against the paper 0 of 1 with torque limits that act and 0 of 1 without effect" in page
    page = results_page([RobotResults("a1", "ovphysx", {"ovphysx": fall})], ABOUT, {})
    assert "## Two readings" not in page


def test_robots_that_did_not_fall_are_counted_by_how_they_end():
    rates = {"mlp": constant(0.2), "nm_mlp": constant(0.0)}, {"mlp": constant(0.5), "nm_mlp": constant(0.1)}
    study = with_outcomes(made_up(members=40), *rates)
    first = study.policies[0]
    height = torch.full_like(first.run.episodes.height_after_onset, 0.28)
    for scenario in range(8):  # one in ten lies far from where it was; those that failed were low, too
        rows = (first.run.cell % 8 == scenario).nonzero()[:, 0]
        height[rows[: round(0.2 * len(rows))]] = 0.1
        height[rows[-round(0.1 * len(rows)) :]] = 0.1
    first = changed(first, height_after_onset=height)
    shares = ends(study, first, (2, 3, 4), low=0.224)
    assert shares == pytest.approx({"failed": 0.2, "sunk": 0.1, "stayed": 0.3, "walked": 0.4}, abs=0.01)
    assert ends(study, first, (9,), low=0.224) is None
    page = results_page([RobotResults("a1", "ovphysx", {"ovphysx": replace(study, policies=(first,))})], ABOUT, {})
    assert "| mlp | 20% | 10% | 30% | 40% |" in page
    assert "below 0.22 m after the fault, 80% of" in page


def test_the_page_says_everything_it_knows():
    studies = {"newton_mjwarp": made_up("newton_mjwarp", seed=1), "ovphysx": made_up(seed=2)}
    third = made_up("mujoco 3.12", seed=3)
    one = RobotResults(
        "a1",
        "ovphysx",
        studies,
        [replace(third, policies=(result,)) for result in third.policies],
        {SHA["mlp"]: entry()},
    )
    page = results_page([one], ABOUT, {"a1": "Because of the friction."})
    baseline, paper = (verdicts(studies["ovphysx"], paper=paper) for paper in (False, True))
    met = baseline + paper
    for words in (
        "**These robots are made up; their figures mean nothing.**",
        "Because of the friction.",
        "(images/results.png)",
        "(images/results_a1.png)",
        "UMC: mlp, baseline: nm_mlp.",
        f"{sum(met)} of {len(met)} criteria are met",
        f"strongest pretrained baseline {sum(baseline)} of {len(baseline)}, against the paper {sum(paper)} of 1 with",
        "that act and 0 of 0 without effect",
        "| mlp against the paper's MLP-UMC (Ours) |",
        "| MLP-UMC (paper) | 93% | 88% | 83% | 78% | 66% | 4% |",
        "| mlp | 0.47 / 0.50 | 0.200 | 71% | **no** | 1 of 64 | 0 | 2.10 |",
        "256 envs instead of 7,400; flat ground instead of tracks",
        "10 instead of 4000. Fewer robots widen the intervals",
        "- A1: the paper's transformer, nm_transformer, body_transformer.",
        "- Solo8: nothing.",
    ):
        assert words in page
    assert page.count("| 2: range + blind |") == 2
    assert re.search(r"\| A1 \| mlp \| 2 \| a1_mlp_cpu \| 1 \| 1000 \| 256 \| PhysX \(ovphysx\), flat, cpu \|", page)
    # every policy on every engine, and the drop against the one it was trained on
    engines = page[page.index("The same policies on") :]
    rows = re.findall(r"^\| (nm_mlp|mlp) \| (\w+) [^|]*\| \d+% ", engines, re.MULTILINE)
    assert rows == [(label, engine) for label in ("mlp", "nm_mlp") for engine in ("Newton", "PhysX", "plain")]
    line = next(line for line in engines.splitlines() if line.startswith("| mlp | Newton"))
    scenarios = tuple(range(1, 9))
    here, there = (rate(one, one.policies[0], "reached@3", scenarios).value for one in studies.values())
    assert line.split("|")[-3].strip() == f"{100 * (there - here):+.0f}"
    # without a pair there are no criteria
    page = results_page([RobotResults("a1", "ovphysx", {"ovphysx": made_up(policies=(("nm_mlp", 2.6),))})], ABOUT, {})
    assert "there is nothing to compare" in page
    assert "other engines" not in page


def test_pictures_show_the_best_policy_the_strongest_baseline_and_the_paper():
    rates = {"mlp": 0.6, "transformer": 0.8, "nm_mlp": 0.2}
    study = made_up(policies=[(label, 1.0) for label in rates], members=10)
    study = with_outcomes(study, dict.fromkeys(rates, constant(0.1)), {k: constant(v) for k, v in rates.items()})
    one = RobotResults("a1", "ovphysx", {"ovphysx": study})
    go2 = RobotResults("go2", "ovphysx", {"ovphysx": replace(study, protocol=replace(study.protocol, track={}))})
    g1 = replace(go2, robot="g1")
    reached, failed = overview([one, g1, go2]).axes
    assert [text.get_text() for text in reached.get_yticklabels()] == ["A1", "Go2", "G1"]
    dots, *paper = ([line.get_xdata()[0] for line in reached.lines if line.get_marker() == one] for one in "os^")
    assert dots == pytest.approx(3 * [80.0, 20.0])
    colors = [line.get_color() for line in reached.lines if line.get_marker() == "o"]
    assert colors == 3 * [COLORS["UMC"], COLORS["baseline"]]
    assert paper == [[83.0], [91.0]]  # its MLP and its transformer; it has A1 on tracks alone
    assert [[line.get_xdata()[0] for line in failed.lines if line.get_marker() == one] for one in "s^"] == [
        [4.0],
        [2.0],
    ]
    assert [paper_rates(study, one) for one in study.policies] == [(83, 4), (91, 2), (48, 23)]
    few = replace(study, protocol=replace(study.protocol, radii=(1.0,)))
    assert main_rates(few, few.policies[0])[0] is None
    figure = section_bars(one)
    assert [text.get_text() for text in figure.legends[0].texts] == ["transformer", "nm_mlp"]
    marks = [{line.get_marker(): line.get_ydata()[0] for line in axis.lines} for axis in figure.axes]
    assert [{marker: one[marker] for marker in "s^"} for one in marks] == [{"s": 83, "^": 91}, {"s": 4, "^": 2}]
    assert section_bars(go2).axes[0].get_legend() is None


def test_every_policy_is_compared_with_the_strongest_baseline():
    rates = {"mlp": 0.8, "transformer": 0.6, "nm_mlp": 0.2, "nm_gru": 0.4}
    study = made_up(policies=[(label, 1.0) for label in rates], members=10)
    study = with_outcomes(study, dict.fromkeys(rates, constant(0.1)), {k: constant(v) for k, v in rates.items()})
    found = {one.pair for one in criteria_of(study) if "paper" not in one.pair}
    assert found == {"mlp against nm_gru", "transformer against nm_gru"}


@pytest.fixture
def package(tmp_path, monkeypatch):
    return publish_made_up(tmp_path, monkeypatch)


def test_the_last_stage_of_every_agent_is_evaluated_on_every_engine(package, monkeypatch, capsys):
    calls = simulate_made_up(monkeypatch)
    argv = ["--robot", "A1", "--engines", "newton_mjwarp", "ovphysx", "--num_envs", "48", "--device", "cpu"]
    argv += ["--main_num_envs", "96"]
    assert results.main([*argv, "protocol.steps=100"]) == 0
    assert [call[-2:] for call in calls] == [
        ["physics=newton_mjwarp", "protocol.steps=100"],  # the first engine, that of the main tables
        ["physics=ovphysx", "protocol.steps=100"],
        ["physics=newton_mjwarp", "protocol.steps=100"],  # torque limits without effect
    ]
    first, other, inert = calls
    assert [call[call.index("--num_envs") + 1] for call in (first, other)] == ["96", "48"]
    assert inert[inert.index("--protocol") :][:7] == [
        *("--protocol", "umc_paper_inert_effort", "--scenarios", "3", "6", "--num_envs", "12")
    ]
    assert sorted(path.name for path in Path("docs/results/a1").iterdir()) == [
        *("newton_mjwarp", "newton_mjwarp_inert_effort", "ovphysx")
    ]
    assert first[1:3] == [str(package / f"{name}.pt") for name in ("a1_mlp_stage2", "a1_nm_mlp_stage1")]
    assert first[first.index("--labels") + 1 :][:2] == ["mlp", "nm_mlp"]
    page = Path("docs/results.md").read_text()
    assert "results: docs/results.md" in capsys.readouterr().out
    assert "Three pairs. The MLPs" in page  # notes.yaml
    assert "-m tools.results_page --robot A1" in page
    assert "| A1 | mlp | 2 | a1_mlp_cpu |" in page
    # regenerated without simulation, and without the folder of the evaluations
    shutil.rmtree("logs")
    before = len(calls)
    assert results.main([*argv, "--report_only"]) == 0
    assert len(calls) == before
    again = Path("docs/results.md").read_text()
    assert "report_only" not in again  # the figures are made by the command that simulates
    assert again == page.replace(" protocol.steps=100", "")


def test_policies_of_two_grounds_have_a_section_for_each(tmp_path, monkeypatch):
    """Policies trained on tracks are evaluated on tracks and flat ground, those trained on flat ground there alone."""
    monkeypatch.chdir(tmp_path)
    trained = {"mlp": "perlin", "nm_mlp": "perlin", "transformer": "flat"}
    for label, ground in trained.items():
        stage = 1 if label.startswith("nm_") else 2
        write_fresh(tmp_path / label, f"UMC-A1-Stage{stage}", label, physics="ovphysx", terrain=ground)
    calls = simulate_made_up(monkeypatch, lambda label: {"terrain": trained[label]})
    checkpoints = [f"{label}/model_0.pt" for label in trained]
    argv = ["--checkpoint", *checkpoints, "--engines", "ovphysx", "--device", "cpu"]
    assert results.main(argv) == 0
    tracks, inert, flat, _ = calls
    assert inert[-3:] == ["logs/results/a1_perlin/ovphysx_inert_effort", *tracks[-2:]]
    assert tracks[1:3] == ["mlp/model_0.pt", "nm_mlp/model_0.pt"]
    assert tracks[-3:] == ["logs/results/a1_perlin/ovphysx", "physics=ovphysx", "env.scene.terrain=perlin"]
    assert flat[1:4] == checkpoints
    assert flat[-3:] == ["logs/results/a1/ovphysx", "physics=ovphysx", "env.scene.terrain=flat"]
    page = Path("docs/results.md").read_text()
    assert page.index("## A1, tracks") < page.index("## A1, flat ground")
    assert [page.count(f"| {one} | mlp against nm_mlp |") for one in ("A1, tracks", "A1, flat ground")] == [4, 4]
    # each policy is listed once
    for words in ("| A1 | mlp | 2 |", "**transformer, by scenario**", "the paper's nm_transformer, body_transformer."):
        assert page.count(words) == 1
    # a ground that is named wins, wherever it stands
    calls.clear()
    argv = ["--checkpoint", *checkpoints, "--device", "cpu", "--engines", "ovphysx"]
    assert results.main([*argv, "env.scene.terrain=perlin"]) == 0
    assert [call[1:4] for call in calls] == [checkpoints] * 2


def test_a_robot_that_the_paper_does_not_have_is_compared_with_none_of_its_conditions(tmp_path, monkeypatch):
    path = write_fresh(tmp_path, "UMC-Go2-Stage2")
    policy = Checkpoint(path, checkpoint_info(read_checkpoint(path), path), sha256(path))
    section = results.Section("go2", "", "ovphysx", ["ovphysx"], {"mlp": policy}, tmp_path / "work", tmp_path / "kept")
    engines = []
    monkeypatch.setattr(results, "_measure_in_isaaclab", lambda *args: engines.append(args[3]))
    results._measure(SimpleNamespace(kept=False, checkpoint=["x"]), [], section)
    assert engines == ["ovphysx"]
    study = made_up()
    study = replace(study, protocol=replace(study.protocol, robot="go2", name="any_robot"))
    page = results_page([RobotResults("go2", "ovphysx", {"ovphysx": study}, [], {})], ABOUT, {})
    assert "| Go2 | mlp |" in page
    assert "the paper's averages" not in page
    assert "Go2: " not in page  # it lacks none of the paper's policies
    assert "instead of" not in page


def test_a_policy_with_another_interface_runs_alone_and_one_that_cannot_be_exported_not_in_mujoco(
    tmp_path, monkeypatch
):
    policies = {}
    for agent in ("mlp", "mt_ftc", "transformer"):
        path = pretrained_folder() / f"solo8_{agent}_stage2.pt"
        policies[agent] = Checkpoint(path, checkpoint_info(read_checkpoint(path), path), sha256(path))
    engines = ["ovphysx", "mujoco"]
    section = results.Section("solo8", "", "ovphysx", engines, policies, tmp_path / "work", tmp_path / "kept")
    measured = []
    monkeypatch.setattr(results, "_measure_in_isaaclab", lambda *args: measured.append((args[5].name, [*args[4]])))
    monkeypatch.setattr(results, "_measure_in_mujoco", lambda *args: measured.append(("mujoco", [*args[2]])))
    results._measure(SimpleNamespace(kept=False, checkpoint=["x"]), [], section)
    # and has an environment of its own
    alone, others = ["mt_ftc"], ["mlp", "transformer"]
    inert = "ovphysx_inert_effort"
    assert measured == [
        *(("ovphysx", others), ("ovphysx_2", alone)),
        ("mujoco", others),
        *((inert, others), (f"{inert}_2", alone)),
    ]


def test_mujoco_has_the_conditions_of_the_other_engines(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(results, "run_umc", lambda command, argv: calls.append((command, argv)))
    monkeypatch.setattr(results, "load_study", lambda path: None)
    monkeypatch.setattr(results, "keep", lambda *_: None)
    section = results.Section("a1", "", "ovphysx", ["ovphysx", "mujoco"], {}, tmp_path / "work", tmp_path / "kept")
    overrides = ["protocol.draws=independent", "env.scene.terrain=flat"]
    one = SimpleNamespace(path=tmp_path, sha256=SHA["mlp"])
    results._measure_in_mujoco(overrides, section, {"mlp": one})
    (command, argv) = calls[-1]
    assert (command, argv[-1], overrides[1] in argv) == ("sim2sim", overrides[0], False)


def test_mujoco_under_other_conditions_is_not_shown(tmp_path, monkeypatch):
    studies = {"ovphysx": made_up(), "mujoco": made_up("mujoco 3.12")}
    monkeypatch.setattr(results, "kept_study", lambda folder, engine, policies: studies[engine])
    monkeypatch.setattr(results, "runs_in_mujoco", lambda one: True)
    policies = {"mlp": SimpleNamespace(path=tmp_path, sha256=SHA["mlp"])}
    section = results.Section("a1", "", "ovphysx", list(studies), policies, tmp_path / "work", tmp_path / "kept")
    assert len(results.collect(section).mujoco) == 1
    other = studies["mujoco"]
    studies["mujoco"] = replace(other, protocol=replace(other.protocol, draws="independent"))
    with pytest.raises(UmcError, match=r"different conditions \(draws\)"):
        results.collect(section)


def test_one_policy_is_measured_anew_without_the_others(package, monkeypatch):
    """Studies are kept beside the page, without this machine's paths; a new policy's study joins the others."""
    made_with = {"members": 10, "command_line": f"python {package}", "git": {"commit": "first" * 8}}
    calls = simulate_made_up(monkeypatch, run=lambda: made_with)
    argv = ["--robot", "A1", "--engines", "ovphysx", "--device", "cpu"]
    assert results.main(argv) == 0
    kept = sorted(Path("docs/results/a1/ovphysx").iterdir())
    assert len(kept) == 2
    assert all(str(package).encode() not in path.read_bytes() for path in kept)
    page = Path("docs/results.md").read_text()
    assert page.count("| firstfirst |") == 2

    other = write_fresh(package.parent / "other", "UMC-A1-Stage2", "mlp", physics="ovphysx", seed=5)
    shutil.copy(other, package / "a1_mlp_stage2.pt")
    models = json.loads((package / MODELS).read_text())
    models["models"]["a1_mlp_stage2"]["sha256"] = sha256(other)
    (package / MODELS).write_text(json.dumps(models))
    made_with |= {"git": {"commit": "other" * 8}, "ground": "flat"}  # which earlier studies leave out
    calls.clear()
    assert results.main([*argv, "--kept"]) == 0
    assert [call[1 : call.index("--robot")] for call in calls] == [[str(package / "a1_mlp_stage2.pt")]] * 2
    page = Path("docs/results.md").read_text()
    assert page.count("| otherother |") == page.count("| firstfirst |") == 1
    assert len(list(Path("docs/results/a1/ovphysx").iterdir())) == 2  # the replaced policy is gone
    calls.clear()
    assert results.main([*argv, "--kept"]) == 0
    assert calls == []

    # robots of another evaluation are refused
    Path("docs/results/a1/ovphysx", f"{sha256(other)[:12]}.study").unlink()
    made_with["members"] = 5
    with pytest.raises(UmcError, match=r"has other faults than mlp; measure both again, with the same --num_envs"):
        results.main([*argv, "--kept"])


def test_a_mistake_is_one_line(package):
    for arguments, words in (
        (["--robot", "h1"], "no policy of h1; publish one"),
        (["--robot", "a2"], "unknown robot a2"),
        (["--num_envs", "0"], "--num_envs is 0"),
        (["physics=ovphysx"], "give the engines with --engines"),
        (["--engine", "ovphysx"], "unknown argument --engine"),
        (["--engines", "mujoco"], "has no main tables"),
        (["--engines", "bullet"], "invalid choice"),
        (["--checkpoint", "gone.pt"], "no checkpoint at gone.pt"),
        (["--report_only", "--robot", "a1"], "nothing of mlp on ovphysx is kept in docs/results/a1; run"),
    ):
        with pytest.raises(UmcError) as error:
            results.main(arguments)
        assert words in str(error.value)
        assert "\n" not in str(error.value)


def diagnosed(folder):
    """A diagnosis as umc diagnose writes it."""
    rates = {"0.1": [0.5, 0.4, 0.6], "1": None}
    found = {"count": 12, "found_within_s": rates, "median_delay_s": 0.12}
    content = {
        "about": {"engine": "ovphysx", "pushes": "yes"},
        "robot_minutes": 120.0,
        "false_alarms": {"count": 3, "healthy_minutes": 60.0, "per_minute": 0.05},
        "right_joint": [0.99, 0.97, 1.0],
        "found": {"sensor faults": found, "other joint faults": {**found, "count": 0}},
    }
    (folder / "diagnosis.json").write_text(json.dumps(content))
    return folder / "diagnosis.json"


def told_in_two_ways(folder):
    study = made_up(members=12)
    sources = zip(study.policies, ("oracle", "detector:file=a.pt"), strict=True)
    told = [replace(one, about={**one.about, "detection": text, "path": f"{folder}/x.pt"}) for one, text in sources]
    about = {**study.about, "command_line": "umc evaluate"}
    save_study(folder / "study.pt", replace(study, about=about, policies=tuple(told)))
    return folder / "study.pt"


def test_the_page_says_what_a_detector_finds_and_costs_where_it_is_kept(tmp_path):
    kept = tmp_path / "kept"
    assert without_oracle.section(kept / "a1", "A1") is None
    plain = RobotResults("a1", "ovphysx", {"ovphysx": made_up()})
    assert "Without an oracle" not in results_page([plain], ABOUT, {})
    files = ["--diagnosis", str(diagnosed(tmp_path)), "--study", str(told_in_two_ways(tmp_path))]
    assert without_oracle.main(["--robot", "a1", *files, "--out", str(kept)]) == 0
    assert str(tmp_path) not in str(load_study(kept / "a1/detector/sources.study"))
    assert "command_line" not in load_study(kept / "a1/detector/sources.study").about
    found = without_oracle.section(kept / "a1", "A1")
    page = results_page([replace(plain, without_oracle=found)], ABOUT, {})
    assert "### A1, without an oracle" in page
    assert "| sensor faults | 12 | 50% [40, 60] | - | 0.12 |" in page
    assert "other joint faults" not in page  # there were none
    assert "3 false alarms in 60 minutes of healthy walking, 0.05 a minute [0.01, 0.15]" in page
    assert "over the same 288 robots (sensor noise: none), averaged" in page
    (row,) = re.findall(r"^\| `detector:file=a.pt` \| .*$", page, re.MULTILINE)
    assert re.fullmatch(r"\| \S+ \| \d+% \[\d+, \d+\] \| [+-]\S+ \[\S+, \S+\] \| \d+% .* \|", row)
    assert re.search(r"^\| `oracle` \| \d+% \[.*\] \| - \|", page, re.MULTILINE)
    (kept / "a1/detector/diagnosis.json").unlink()  # each of them alone has its part
    assert "sensor faults" not in results_page(
        [replace(plain, without_oracle=without_oracle.section(kept / "a1", "A1"))], ABOUT, {}
    )


def test_what_is_no_diagnosis_is_not_kept(tmp_path):
    (tmp_path / "diagnosis.json").write_text("{}")
    with pytest.raises(UmcError, match=r"is no diagnosis .*; run umc diagnose again"):
        without_oracle.keep(tmp_path / "kept", tmp_path / "diagnosis.json", None)
    save_study(tmp_path / "study.pt", made_up())
    with pytest.raises(UmcError, match="has policies without a source; evaluate them with --detection"):
        without_oracle.keep(tmp_path / "kept", None, tmp_path / "study.pt")
    with pytest.raises(UmcError, match="nothing to keep; give --diagnosis, --study or both"):
        without_oracle.main(["--robot", "a1"])


def test_the_committed_page_has_the_explanations_of_its_notes():
    def texts(value):
        return [text for one in value.values() for text in texts(one)] if isinstance(value, dict) else [value]

    page = " ".join((Path(__file__).parents[2] / "docs" / "results.md").read_text().split())
    for text in texts(read_yaml(results.NOTES.read_text(), "notes")):
        assert " ".join(text.split()) in page, text
