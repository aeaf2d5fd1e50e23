# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The report of a study: what its files hold, that the page needs no network, and that a failure leaves the old one."""

import csv
import hashlib
import io
import json
import os
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch
from made_up_results import changed
from made_up_study import JOINTS, average, made_up_study
from umc.evaluation.arguments import HEALTHY
from umc.evaluation.estimates import Estimates
from umc.evaluation.grid import apply_grid
from umc.evaluation.metrics import Outcome
from umc.evaluation.protocol import Setting, protocol_for
from umc.evaluation.report import score_table, study_files, summary, write_all, write_study_report
from umc.evaluation.report.paper import departures, paper_tables
from umc.evaluation.report.renderers import Cell, Row, Table, printed, ranks, render
from umc.evaluation.report.screen import healthy_falls
from umc.evaluation.report.tables import ablation_tables, left_out_table, main_table
from umc.training.sweep_file import read_sweep_file
from umc.utils.console import escape_markdown
from umc.utils.errors import UmcError

RATES = ("reached@1", "reached@2", "failed")
VOID = {"meta", "img", "br", "link", "hr"}


@pytest.fixture(scope="module")
def study():
    study = made_up_study(members=4, vary_severity=True)
    odd = replace(study.policies[1], label="MLP <UMC> & 5_%", group="MLP <UMC> & 5_%")
    about = {**study.about, "command_line": "evaluate.py --checkpoint a.pt 'b<c>.pt'", "versions": {"torch": "2"}}
    return replace(study, policies=(study.policies[0], odd, study.policies[2]), about=about)


@pytest.fixture(scope="module")
def files(study):
    return study_files(study, resamples=60)


class Page(HTMLParser):
    """Follows tags and collects what a browser would fetch or run."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.tags, self.ids, self.links, self.text = [], [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.fetched += [values[name] for name in ("src", "srcset", "data") if name in values]
        self.links += [values["href"]] if "href" in values else []
        self.ids += [values["id"]] if "id" in values else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def page(files):
    page = Page()
    page.feed(files["report.html"].decode())
    page.close()
    return page


def test_the_page_is_complete_without_network_or_script(page, files):
    assert page.open == []
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert page.fetched
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.fetched)
    assert page.links
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(set(page.ids)) == len(page.ids)
    style = files["report.html"].decode().partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_names_conditions_versions_and_data(page, files, study):
    text = " ".join(" ".join(page.text).split())
    assert "4 robots of each scenario and setting (96);" in text
    for words in ("Summary", "seed 800, onset 100", "effort 8", "evaluate.py --checkpoint a.pt 'b<c>.pt'", "torch"):
        assert words in text
    assert "MLP <UMC> & 5_%" in text  # escaped, not parsed
    assert "One training each" in text
    assert "made up" in text.partition("Robots that stood when")[0]
    assert hashlib.sha256(files["robots.csv"]).hexdigest() in text
    assert "Trf-UMC (paper)" in text
    assert page.tags.count("img") == len([name for name in files if name.endswith(".svg")])


def test_the_json_is_versioned_and_holds_figures_intervals_and_differences(files, study):
    content = json.loads(files["report.json"])
    assert content["schema"] == 3
    assert [one["label"] for one in content["policies"]] == [one.label for one in study.policies]
    first = content["policies"][0]
    score = study.score(study.policies[0], study.scenario_rows(study.policies[0], 2))
    failed = first["scenarios"]["2"]["failed"]
    assert failed["value"] == pytest.approx(score["failed"])
    assert failed["low"] < failed["value"] < failed["high"]
    assert first["counts"]["all"]["envs"] == 96
    assert first["counts"]["2"]["evaluated"] == score.evaluated
    assert {part["by"] for part in first["breakdown"]} == {"setting", "onset", "joint", "severity", "stance"}
    assert [one["second"] for one in content["differences"]] == [one.group for one in study.policies[1:]]
    assert set(content["differences"][0]["average"]["failed"]) == {"value", "low", "high", "p", "count"}
    assert content["paper"]["tables"][0]["rows"]["MLP-UMC (Ours)"][-1] == 4
    assert content["protocol"]["steps"] == 750


def read_csv(data):
    return list(csv.DictReader(io.StringIO(data.decode())))


def test_robots_and_cells_can_be_scored_again_from_the_csv(files, study):
    rows = read_csv(files["robots.csv"])
    assert len(rows) == 3 * 96
    mine = [row for row in rows if row["policy"] == "example A" and row["scenario"] == "4"]
    evaluated = [row for row in mine if row["outcome"] in ("up", "failed")]
    score = study.score(study.policies[0], study.scenario_rows(study.policies[0], 4))
    assert len(evaluated) == score.evaluated
    assert sum(row["outcome"] == "failed" for row in evaluated) / len(evaluated) == pytest.approx(score["failed"])
    far = [row for row in evaluated if row["outcome"] == "up" and float(row["distance_m"]) > 3.0]
    assert len(far) / len(evaluated) == pytest.approx(score.reached[2])
    broken = zip(study.joint_names, study.policies[0].run.joints[0].tolist(), strict=True)
    assert rows[0]["faulty_joints"].split() == [name for name, on in broken if on]
    assert {row["scenario"] for row in rows if row["severity_effort"]} == {"3", "6"}
    cells = read_csv(files["cells.csv"])
    assert len({(row["policy"], row["scenario"], row["setting"]) for row in cells}) == len(cells) == 3 * 24
    for row in cells:
        assert int(row["envs"]) == 4
        assert float(row["failed_low"]) <= float(row["failed"]) <= float(row["failed_high"])


def test_markdown_tables_have_as_many_fields_in_every_line(files):
    blocks = [block.splitlines() for block in files["tables.md"].decode().split("\n\n") if block.startswith("|")]
    assert len(blocks) > 8
    for block in blocks:
        assert len({line.count("|") for line in block}) == 1
    assert r"| MLP &lt;UMC> & 5\_% |" in files["tables.md"].decode()  # no tag of HTML


def test_latex_is_escaped_and_balanced(files):
    text = files["tables.tex"].decode()
    assert r"MLP \textless{}UMC\textgreater{} \& 5\_\%" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == text.count(r"\label{")
    for environment in text.split(r"\begin{tabular}")[1:]:
        body = environment.partition(r"\midrule")[2].partition(r"\end{tabular}")[0]
        columns = environment.partition("@{}l")[2].partition("@{}")[0]
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert {line.replace(r"\&", "").count("&") for line in lines} == {len(columns)}
    bare = text.replace(r"\{", "").replace(r"\}", "")
    assert bare.count("{") == bare.count("}")
    for name in (r"\_", "tab:umc_", "scenarios_", "difference_", "left_out", "by_"):
        bare = bare.replace(name, "")
    assert "_" not in bare


def test_the_papers_tables_are_all_there_and_hang_together():
    tables = {one.name: one for one in paper_tables()}
    assert {name: len(one.rows) for name, one in tables.items()} == {
        "a1": 5, "g1": 5, "h1": 5, "solo8": 2, "ratio": 7, "mask_value": 3, "paradigm": 2,
    }  # fmt: skip
    for name, table in tables.items():
        protocol = protocol_for(table.robot, name=table.protocol)
        assert table.radii == protocol.radii
        for row, (*reached, failed) in table.rows.items():
            assert len(reached) == len(table.radii)
            assert reached[0] + failed <= 100
            assert reached == sorted(reached, reverse=True) or (name, row) == ("a1", "MLP-NM")
    default = [tables["ratio"].rows["Default(1:1:1:1)"], tables["mask_value"].rows["Default(0)"]]
    assert default == [tables["paradigm"].rows["Stage-Based"]] * 2  # one policy in three tables


def test_the_main_table_is_the_papers_with_ours_above_it(study):
    table = main_table(Estimates(study, resamples=20))
    assert table.header == ("Methods", "1 unit ↑", "2 unit ↑", "3 unit ↑", "4 unit ↑", "5 unit ↑", "failed ↓")
    assert [row.kind for row in table.rows] == [""] * 3 + ["paper"] * 5
    assert [row.rule for row in table.rows] == [False] * 3 + [True] + [False] * 4
    assert [cell.text for cell in table.rows[-1].cells] == ["Trf-UMC (paper)", "97%", "95%", "91%", "84%", "72%", "2%"]
    assert all(cell.interval for row in table.rows[:3] for cell in row.cells[1:])
    # the demo's policies get better from row to row: more reach a radius and fewer fail
    for column in (1, 6):
        assert [row.cells[column].rank for row in table.rows[:3]] == [0, 2, 1]
    other = replace(study, protocol=replace(study.protocol, radii=(1.0, 2.0)))  # not comparable
    assert not [row for row in main_table(Estimates(other, resamples=20)).rows if row.kind == "paper"]


def test_departures_from_the_paper_are_listed(study):
    assert departures(study) == [
        "robots of each scenario and setting: 4 instead of 4000",
        "simulator: none instead of Isaac Gym",
    ]
    mild = replace(study, protocol=replace(study.protocol, num_joints=(1, 2), severity={"rom": 0.5}))
    words = departures(mild)
    assert "num joints: 1, 2 instead of 4, 5" in words
    assert "severity: rom 0.5 instead of rom 0.1, effort 8, velocity 3" in words
    assert "num joints: 1, 2" in " ".join(main_table(Estimates(mild, resamples=20)).notes)
    for name in ("umc_paper_inert_effort", "my_own"):  # no conditions of the paper
        assert "severity: rom 0.5 instead of rom 0.1, effort 8, velocity 3" in departures(
            replace(study, protocol=replace(mild.protocol, name=name))
        )
    assert departures(replace(study, protocol=replace(study.protocol, robot="go2"))) == []  # the paper has none
    ours = replace(study.protocol, track={})  # as studies of UMC 0.1 have it: with terrain seeds that nothing reads
    for flat in (ours, study.protocol.without_track()):
        words = departures(replace(study, protocol=flat))
        assert words == ["track: none instead of width 6, block_length 6, border 4", *departures(study)]


def test_an_ablation_puts_each_policy_into_the_table_that_names_it():
    sweep = read_sweep_file("ablation_ratio", {})
    protocol = apply_grid(sweep, protocol_for("a1", sweep.scenarios, name=sweep.protocol), JOINTS)
    study = made_up_study(members=3, policies=[("1:2:2:1", 1.0), ("-100", 1.5)], protocol=protocol)
    tables = {one.key: one for one in ablation_tables(Estimates(study, resamples=20))}
    assert [row.cells[0].text for row in tables["ratio"].rows][:2] == ["1:2:2:1", "1:1:1:0 (paper)"]
    assert [row.cells[0].text for row in tables["mask_value"].rows][:2] == ["-100", "100 (paper)"]
    assert "paradigm" not in tables


def test_robots_left_out_are_counted_by_cause(study):
    table = left_out_table(Estimates(study, resamples=20))
    names = [row.cells[0].text for row in table.rows[:4]]
    assert names == [f"example A: {cause}" for cause in ("evaluated", "fell before onset", "physics not finite",
                                                     "ended before onset")]  # fmt: skip
    for first in range(0, 12, 4):
        for column in range(1, 10):
            total = sum(int(table.rows[first + line].cells[column].text) for line in range(4))
            assert total == (96 if column == 9 else 12)


def test_the_terminal_table_has_a_line_for_each_scenario_and_the_average(study):
    protocol = replace(study.protocol, radii=(1.0, 2.0))
    small = replace(study, protocol=protocol)
    result = study.policies[0]
    words, *lines = score_table(small, result).splitlines()
    assert "in % of the robots that stood at onset" in words
    rows = [line.split() for line in lines if not line.startswith("-")]
    assert [row[0] for row in rows] == ["scenario", *map(str, range(1, 9)), "average"]
    mean = average([small.score(result, small.scenario_rows(result, one)) for one in protocol.scenarios])
    assert rows[-1][1:5] == [str(mean.evaluated), *(f"{100 * mean[key]:.0f}" for key in RATES)]
    assert len({len(line) for line in lines}) == 1


def test_few_robots_have_no_p_and_every_form_of_the_report_says_why(study, files):
    assert Estimates(study, resamples=20).too_few
    for name in ("tables.md", "tables.tex", "report.html"):
        text = " ".join(files[name].decode().split())
        assert "have no interval and no p: a fault seed has fewer than 10 robots" in text
        assert "Filled marks" not in text
        assert name == "report.html" or "Paired bootstrap" not in text  # the page explains every method
    assert json.loads(files["report.json"])["statistics"]["too_few_for_bootstrap"] is True


def test_the_report_says_which_faults_were_drawn(study, files):
    drawn = json.loads(files["report.json"])["faults_drawn"]
    cells = len(study.policies[0].run.cell) // len(study.protocol.scenarios)
    assert list(drawn) == [str(scenario) for scenario in study.protocol.scenarios if scenario != HEALTHY]
    for one in drawn.values():
        assert sum(one["robots_by_faulty_joints"].values()) == cells
        assert set(one["robots_by_joint"]) == set(study.joint_names)
    assert "4 faulty joints" in files["tables.md"].decode()
    assert "spread evenly over the robots of a cell" in files["tables.md"].decode()


def test_the_summary_warns_of_few_robots_trainings_and_steps(study):
    _, warnings = summary(Estimates(study, resamples=20))
    assert any("as few as" in line for line in warnings)
    quick = replace(study, about={**study.about, "quick": True})
    assert any("quick run" in line for line in summary(Estimates(quick, resamples=20))[1])
    outcome = study.policies[0].run.episodes.outcome.clone()
    outcome[:40] = Outcome.FELL_BEFORE_ONSET
    worse = replace(study, policies=(changed(study.policies[0], outcome=outcome),))
    assert any("of 96 robots are left out" in line for line in summary(Estimates(worse, resamples=20))[1])
    three = made_up_study(members=12, policies=[("a", 1.0)], train_seeds=3)
    assert any("3 trainings" in line for line in summary(Estimates(three, resamples=20))[1])


def test_the_summary_has_no_minus_before_zero_points():
    study = made_up_study(members=10, policies=[("a", 1.0)])
    (one,) = study.policies
    outcome = torch.full_like(one.run.cell, Outcome.UP)
    outcome[0] = Outcome.FAILED  # one of 240 robots: 0.4 points
    worse, best = (changed(one, outcome=values) for values in (outcome, torch.zeros_like(outcome)))
    both = replace(study, policies=(worse, replace(best, label="b", group="b")))
    (line,) = [line for line in summary(Estimates(both, resamples=100))[0] if "against" in line]
    assert "failed +0 points [-1, +0], p = " in line


def test_the_same_study_gives_the_same_report_to_the_byte(study, files):
    assert study_files(study, resamples=60) == files


def test_figures_of_an_earlier_report_do_not_stay(tmp_path):
    write_all(tmp_path, dict.fromkeys([f"figures/{name}.svg" for name in ("joints_2", "joints_1", "own")], b""))
    write_all(tmp_path, {"figures/joints_1.svg": b""})
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["joints_1.svg", "own.svg"]


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_report(tmp_path, monkeypatch, study):
    write_all(tmp_path, {"report.json": b"old", "figures/scenarios.svg": b"old"})
    calls = []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 5:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr("umc.evaluation.report.write.fsync", full)
    with pytest.raises(UmcError, match="No space left on device; choose another folder"):
        write_study_report(study, tmp_path, resamples=20)
    left = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"report.json": b"old", "figures/scenarios.svg": b"old"}


def test_ranks_numbers_and_a_table_of_one_row():
    assert ranks([0.5, 0.7, 0.7, None, 0.1], 1) == [2, 1, 1, 0, 0]
    assert ranks([3.0, 1.0], -1) == [2, 1]
    assert ranks([1.0, 1.0], 1) == ranks([1.0, 2.0], 0) == [0, 0]
    assert (printed(-0.0004, 2), printed(0.125, 1, "+")) == ("0.00", "+0.1")
    table = Table("t", "A & B", ("x", "failed ↓"), (Row((Cell("a|b"), Cell("5%", "[1, 9]", 1))),), ("Note.",))
    assert "| a\\|b | **5%** [1, 9] |" in table.markdown()
    assert escape_markdown("nm_mlp _a_ *b* <c> < 0.1 &lt; & d") == r"nm_mlp \_a\_ \*b\* &lt;c> < 0.1 \&lt; & d"
    assert escape_markdown("<script>x</script> [a](javascript:b)") == r"&lt;script>x&lt;/script> [a]\(javascript:b)"
    latex = render("table.tex", table=table)
    assert r"a|b & \textbf{5\%} {\scriptsize [1, 9]} \\" in latex
    assert r"failed $\downarrow$" in latex
    assert "<td><b>5%</b> <small>[1, 9]</small></td>" in table.html()


def test_a_protocol_with_scenarios_of_its_own_is_reported(study):
    own = protocol_for("a1", name="real_world")
    assert own.conditions
    files = study_files(replace(study, protocol=replace(own, settings=study.protocol.settings)), resamples=20)
    assert "report.html" in files
    assert healthy_falls(replace(study, protocol=own)) is not None


def test_settings_that_differ_in_the_terrain_are_rows_of_their_own(study):
    settings = tuple(Setting(1, 75, terrain) for terrain in (100, 25, 75))
    assert len({setting.name for setting in settings}) == 3
