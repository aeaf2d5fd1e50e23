# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Studies kept beside the results page, so that one policy can be evaluated without the others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fresh_policy import write_fresh
from made_up_results import publish_made_up, simulate_made_up
from umc.rl.pretrained import MODELS
from umc.utils.errors import UmcError
from umc.utils.io import sha256

from tools.results_page import __main__ as results


def test_one_policy_is_measured_anew_without_the_others(tmp_path, monkeypatch):
    """Studies are kept beside the page, without this machine's paths; a new policy's study joins the others."""
    package = publish_made_up(tmp_path, monkeypatch)
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
    made_with["git"] = {"commit": "other" * 8}
    calls.clear()
    assert results.main([*argv, "--kept"]) == 0
    (call,) = calls
    assert call[1 : call.index("--robot")] == [str(package / "a1_mlp_stage2.pt")]
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
