# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The launcher of commands: which errors pass through Isaac Lab's, and what is closed before it."""

import argparse
import contextlib

import pytest
from umc.tasks.simulation import LAST_PHASE, simulation
from umc.utils.distributed import RankLostError
from umc.utils.errors import UmcError


@pytest.fixture
def log(monkeypatch):
    """What happens in Isaac Lab's launcher, which prints a traceback of every error that passes."""
    events = []

    @contextlib.contextmanager
    def launch(cfg, options):
        events.append("launched")
        try:
            yield
        except Exception as error:
            events.append(type(error).__name__)
            raise
        finally:
            events.append("closed")

    monkeypatch.setattr("isaaclab.app.launch_simulation", launch)
    monkeypatch.setattr("umc.tasks.simulation.filter_physx_messages", lambda *_: None)
    return events


def run(log, error=None):
    with simulation(None, argparse.Namespace(), "cpu") as (finish_phase, cleanup):
        cleanup.callback(log.append, "env closed")
        finish_phase(LAST_PHASE)
        if error is not None:
            raise error


def test_the_env_is_closed_before_the_simulation(log, capsys):
    run(log)
    assert log == ["launched", "env closed", "closed"]
    assert [line.split(":")[0].strip() for line in capsys.readouterr().out.splitlines()[1:]] == ["engine", "policy"]


@pytest.mark.parametrize("error", [UmcError("no such joint"), RankLostError(RuntimeError("gloo")), BrokenPipeError()])
def test_an_error_that_ends_in_a_line_is_raised_outside_of_the_launcher(log, error):
    with pytest.raises(type(error)):
        run(log, error)
    assert log == ["launched", "env closed", "closed"]


@pytest.mark.parametrize("error", [KeyError("x"), OSError("no disk")])
def test_a_defect_passes_through_the_launcher(log, error):
    with pytest.raises(type(error)):
        run(log, error)
    assert log == ["launched", "env closed", type(error).__name__, "closed"]
