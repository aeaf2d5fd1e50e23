# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Threads of torch: the user's word, then what was measured on this machine, then the rule."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from umc.cli.tune import choices, fewest_worth
from umc.utils import threads
from umc.utils.errors import UmcError
from umc.utils.executor import JOB_BYTES, Job, LocalExecutor
from umc.utils.threads import LARGE, SMALL, cores, read_tuned, torch_threads, tuned_file, write_tuned


@pytest.fixture(autouse=True)
def _own_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize(("there", "count"), [(1, 1), (2, 2), (8, 8), (64, 8)])
def test_every_core_has_a_thread_up_to_eight(monkeypatch, there, count):
    monkeypatch.setattr(threads, "cores", lambda: there)
    assert torch_threads(SMALL).count == torch_threads(LARGE).count == count


def test_what_was_measured_comes_before_the_rule_and_the_users_word_before_both(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 8)
    write_tuned({SMALL: 3})
    write_tuned({LARGE: 64})
    assert read_tuned() == {SMALL: 3, LARGE: 64}
    assert torch_threads(SMALL) == (3, "umc tune")
    assert torch_threads(LARGE).count == 8  # measured where there were more cores
    for given, count in (("5", 5), ("²", 8)):
        monkeypatch.setenv("OMP_NUM_THREADS", given)
        assert torch_threads(SMALL) == (count, "OMP_NUM_THREADS")


@pytest.mark.parametrize("content", ['{"small": 0}', '{"small": "2"}', '{"medium": 2}', "[]", "{"])
def test_a_damaged_file_is_refused_by_name(content):
    tuned_file().parent.mkdir(parents=True)
    tuned_file().write_text(content)
    with pytest.raises(UmcError, match=r"threads_.*delete it"):
        torch_threads(SMALL)


@pytest.mark.parametrize(("limit", "count"), [("max 100000", 4), ("150000 100000", 2), ("50000 100000", 1)])
def test_a_containers_limit_counts(tmp_path, monkeypatch, limit, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    (tmp_path / "cpu.max").write_text(limit)
    assert cores(tmp_path) == count


@pytest.mark.parametrize(("limit", "count"), [("-1", 4), ("150000", 2), ("50000", 1)])
def test_a_containers_limit_counts_in_the_older_version_of_control_groups(tmp_path, monkeypatch, limit, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(f"{limit}\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert cores(tmp_path) == count


def test_more_threads_have_to_be_worth_it(monkeypatch):
    assert fewest_worth({1: 100.0, 2: 104.0}) == 1
    assert fewest_worth({1: 100.0, 2: 160.0, 4: 161.0}) == 2
    assert fewest_worth({1: 100.0, 2: 104.0, 4: 108.0}) == 2
    monkeypatch.setattr("umc.cli.tune.cores", lambda: 6)
    assert choices() == [1, 2, 4, 6]


def test_jobs_fill_the_cores_with_one_thread_each(monkeypatch):
    monkeypatch.setattr("umc.utils.executor.cores", lambda: 3)
    monkeypatch.setattr("umc.utils.executor.available_bytes", lambda: 100 * JOB_BYTES)
    executor = LocalExecutor(None, "cpu")
    assert executor.count == 3
    process = executor.start(Job(("-c", "import os; print(os.environ['OMP_NUM_THREADS'])")), 0)
    while (result := process.poll()) is None:
        pass
    assert (result.code, result.output) == (0, "1")
    monkeypatch.setattr("umc.utils.executor.available_bytes", lambda: 2 * JOB_BYTES)
    assert LocalExecutor(None, "cpu").count == 2
    assert LocalExecutor(1, "cpu").environment == {}


def test_waiting_threads_sleep_unless_the_user_says_otherwise():
    program = "import os; from umc.cli.main import main; main(['list', 'sweeps']); print(os.environ['OMP_WAIT_POLICY'])"
    for given in (None, "active"):
        environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
        environment |= {} if given is None else {"OMP_WAIT_POLICY": given}
        shown = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert shown.stdout.splitlines()[-1] == (given or "passive")
