# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Commands that other commands start: who stops the one stops the other, once."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest
from umc.utils.cli import run_main
from umc.utils.errors import UmcError
from umc.utils.process import lock_folder


def test_ctrl_c_reaches_a_child_once_and_its_status_comes_back(tmp_path):
    child = tmp_path / "child.py"
    child.write_text(
        "import signal, sys, time\n"
        "hits = []\n"
        "signal.signal(signal.SIGINT, lambda *_: hits.append(1))\n"
        "open(sys.argv[1], 'w').close()\n"
        "while not hits: time.sleep(0.01)\n"
        "time.sleep(0.2)\n"
        "sys.exit(100 + len(hits))\n"
    )
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import sys\nimport umc.utils.process as process\n"
        "process.UMC = ()\n"
        "try: process.run_umc(sys.argv[1], [sys.argv[2]])\n"
        "except process.ChildFailed as error: sys.exit(error.code)\n"
    )
    ready = tmp_path / "ready"
    process = subprocess.Popen([sys.executable, str(parent), str(child), str(ready)], start_new_session=True)
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.wait(60) == 101


def test_half_of_torchruns_variables_is_one_line(monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    assert run_main(lambda _: 0, []) == 2
    assert "RANK" in capsys.readouterr().err


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize(
    ("work", "wanted"),
    [
        (
            "status = run_main(lambda _: signal.raise_signal(signal.SIGHUP) or 0, [])\n"
            "assert signal.getsignal(signal.SIGHUP) is before\nsys.exit(status)",
            (143, 0),
        ),
        (
            "hits = []\nwith handle_signals(hits.append): signal.raise_signal(signal.SIGHUP)\n"
            "assert signal.getsignal(signal.SIGHUP) is before\nsys.exit(sum(hits))",
            (signal.SIGTERM, 0),
        ),
    ],
)
def test_a_terminal_that_closes_stops_a_command_as_sigterm_does_unless_nohup_ignores_it(ignored, work, wanted):
    code = (
        "import signal, sys\nfrom umc.utils.cli import run_main\nfrom umc.utils.process import handle_signals\n"
        f"before = signal.SIG_{'IGN' if ignored else 'DFL'}\nsignal.signal(signal.SIGHUP, before)\n{work}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == wanted[ignored], done.stderr


@pytest.mark.parametrize("arguments", [["agents"], ["nothing"]])
def test_a_command_whose_output_nobody_reads_ends_without_a_word(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "umc", "list", *arguments]
    both = subprocess.run(command, stdout=writer, stderr=writer, check=False)
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert both.returncode == 141
    if arguments == ["agents"]:
        assert (done.returncode, done.stderr) == (141, "")
    else:  # its message goes elsewhere
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_a_file_system_without_locks_is_refused_in_one_line(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(UmcError, match=r"^cannot lock .*lock \(No locks available\); choose a folder"):
        lock_folder(tmp_path, "trains").__enter__()


def test_output_onto_a_full_disk_is_refused_in_one_line():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "umc", "list", "agents"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        ["error: cannot write: No space left on device; free some space or choose another folder"],
    )
