# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Jobs on this machine: files travel to and from them, failures are quoted, and what is left early is stopped."""

from __future__ import annotations

import signal
import time
from types import SimpleNamespace

import pytest
from umc.utils.errors import UmcError
from umc.utils.executor import FOLDER, Job, LocalExecutor, RayTask, check_address, run_all, run_on_worker

COPY = "import sys; f = sys.argv[1]; open(f + '/out', 'w').write(open(f + '/sub/in').read() * 2); print('copied')"


def copy(text):
    return Job(("-c", COPY, FOLDER), inputs={"sub/in": text.encode()}, outputs=("out", "missing"))


@pytest.fixture
def local():
    return LocalExecutor(2, "cpu")


def test_files_travel_to_jobs_and_back(local):
    results = dict(run_all(local, [copy("a"), copy("b"), copy("c")]))
    assert [results[number].files for number in range(3)] == [{"out": b"aa"}, {"out": b"bb"}, {"out": b"cc"}]
    assert {(result.code, result.output) for result in results.values()} == {(0, "copied")}


def test_a_failure_is_quoted(local):
    ((_, result),) = run_all(local, [Job(("-c", "print('one\\n\\ntwo'); raise SystemExit(7)"))])
    assert (result.code, result.output) == (7, "one | two")


def test_jobs_are_stopped_where_their_results_are_no_longer_wanted(local, tmp_path):
    ready = tmp_path / "ready"
    wait = Job(("-c", f"import time; open({str(ready)!r}, 'w'); time.sleep(600)"))
    follow = Job(("-c", f"import os, time\nwhile not os.path.exists({str(ready)!r}): time.sleep(.1)"))
    results = run_all(local, [wait, follow])
    assert next(results)[0] == 1
    start = time.monotonic()
    results.close()
    assert time.monotonic() - start < 60
    process = local.start(Job(("-c", "import time; time.sleep(600)")), 0)
    process.stop()
    while (result := process.poll()) is None:
        time.sleep(0.05)
    assert result.code == 128 + signal.SIGTERM


def test_a_worker_needs_the_shared_disk_of_a_log(tmp_path):
    result = run_on_worker(Job(("-c", ""), log=tmp_path / "nowhere.log"), str(tmp_path))
    assert result.code == 1
    assert "put --logs on a disk that all machines share" in result.output


@pytest.mark.parametrize(("text", "shown"), [("one\ntwo\n", "Ray: two"), ("", "Ray: RayError")])
def test_an_error_of_ray_is_the_result_of_its_job(text, shown):
    class RayError(Exception):
        pass

    class TaskCancelledError(RayError):
        pass

    def get(_):
        raise RayError(text)

    exceptions = SimpleNamespace(RayError=RayError, TaskCancelledError=TaskCancelledError)
    ray = SimpleNamespace(wait=lambda refs, timeout: (refs, []), get=get, exceptions=exceptions)
    assert RayTask(ray, None).poll().output == shown


@pytest.mark.parametrize(
    ("address", "words"),
    [("cluster", "looks like 10.0.0.1:6379"), ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1")],
)
def test_a_cluster_that_does_not_answer_is_refused_at_once(address, words):
    with pytest.raises(UmcError, match=words):
        check_address(address)
