# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""GitHub's workflows run the checks of .ci/check, with pinned actions; only the jobs that publish may write."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
GITHUB = REPOSITORY / ".github"
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((GITHUB / "workflows").glob("*.yml"))}
ACTIONS = {
    path.parent.name: yaml.safe_load(path.read_text()) for path in sorted((GITHUB / "actions").glob("*/action.yml"))
}
CHECK = (REPOSITORY / ".ci/check").read_text()
KNOWN = re.findall(r"^        (\w+)\)(?: step|$)", CHECK, re.MULTILINE)


def steps() -> list[dict[str, Any]]:
    """Every step of every job and of the composite actions."""
    jobs = [job for workflow in WORKFLOWS.values() for job in workflow["jobs"].values()]
    return [step for job in jobs for step in job["steps"]] + [s for a in ACTIONS.values() for s in a["runs"]["steps"]]


def test_every_check_is_run_by_a_workflow():
    run = {step["run"] for step in steps() if "run" in step}
    called = {name for line in run if line.startswith(".ci/check ") for name in line.split()[1:]}
    assert called == set(KNOWN) - {"environment", "files"}  # the launcher and lint run these
    nightly = [step.get("run") for job in WORKFLOWS["nightly"]["jobs"].values() for step in job["steps"]]
    assert ".ci/check browser all" in nightly
    benchmarks = {path.stem for path in (REPOSITORY / "benchmarks").glob("*.py") if "__main__" in path.read_text()}
    assert set(re.findall(r"^            benchmark (\w+)", CHECK, re.M)) == benchmarks


def test_workflows_use_pinned_actions_read_the_repository_and_put_no_expression_into_a_script():
    used = [step["uses"] for step in steps() if "uses" in step]
    pinned = re.compile(r"[\w/-]+@[0-9a-f]{40}")
    assert [name for name in used if not (pinned.fullmatch(name) or (REPOSITORY / name / "action.yml").exists())] == []
    assert all(workflow["permissions"] == {"contents": "read"} for workflow in WORKFLOWS.values())
    # jobs that may write run no code of the repository
    jobs = {(name, title): job for name, one in WORKFLOWS.items() for title, job in one["jobs"].items()}
    writing = {place: job for place, job in jobs.items() if "permissions" in job}
    assert {place: job["permissions"] for place, job in writing.items()} == {
        ("pages", "publish"): {"pages": "write", "id-token": "write"},
        ("release", "publish"): {"id-token": "write"},
    }
    assert all(
        "run" not in step and "checkout" not in step["uses"] for job in writing.values() for step in job["steps"]
    )
    checkouts = [step["with"] for step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert {checkout["persist-credentials"] for checkout in checkouts} == {False}
    # the name of a branch or a title would be run as shell
    assert [step["run"] for step in steps() if "${{" in step.get("run", "")] == []


def test_wrong_use_of_check():
    for arguments, message in (([], "error: which check?"), (["typos"], 'error: no check "typos"')):
        result = subprocess.run([REPOSITORY / ".ci/check", *arguments], capture_output=True, text=True, check=False)
        assert result.returncode == 2
        assert result.stderr.startswith(message)
