# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Take ``docs/images/viewer.png``: ``./isaaclab.sh -p tests/viewer/take_picture.py``."""

import sys
import tempfile
from pathlib import Path

from live_page import browser_page, viewer

ROOT = Path(__file__).resolve().parents[2]
POLICY = "pretrained:a1_transformer_small32_stage2"
"""A transformer, for its attention map."""

COLORS = 128
"""Size of the picture's palette: the README loads it."""

FAULTS = (("RR_thigh_joint", "bias", 0.3, 0.1), ("FR_calf_joint", "effort", 8.0, 14.0))
"""Joint, kind, first severity of the slider, severity: A1 keeps walking."""


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        arguments = ("--checkpoint", POLICY, "--scenario", "8", "physics=ovphysx", "env.scene.terrain=flat")
        with viewer(Path(folder), *arguments) as running, browser_page(scale=1.0) as live:
            live.open(running.url)
            live.close_notes()
            for joint, kind, first, severity in FAULTS:
                live.choose("Joint", joint)
                live.choose_fault(kind, first)
                live.set_severity(severity)
                live.press("Break")
                live.wait_for_row(joint, kind)
            live.wait_for_limit("torque", FAULTS[-1][-1])
            live.page.get_by_role("tab", name="Attention").click()
            live.page.wait_for_timeout(2500)
            shot = live.screenshot()
            print(live.page.locator("#umc-faults").inner_text())
    shot.quantize(COLORS).save(path, optimize=True)
    print(f"picture: {path} ({path.stat().st_size / 1024:.0f} KB)")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images" / "viewer.png")
