# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A user opens the live viewer in a real Chromium, breaks a joint by clicks, sees it, and heals it."""

import pytest
from fresh_policy import write_fresh
from live_page import browser_page, dark_pixels, red_pixels, viewer
from umc.faults import MANUAL_FAULT, read_ledger
from umc.viewer.panel import HEADS

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]  # a browser on a busy machine is slow

JOINT = "FR_calf_joint"
"""Its link faces the camera."""

HEALTHY, WEAK, WEAKER = 25.0, 8.0, 2.0
"""Largest torque of A1's motor, first value of the slider (the paper's inference setting), second value [N*m]."""

PASTED = 14.0
"""What is pasted into the box before the button is pressed [N*m]."""

FIRST_BIAS, BIAS = 0.3, 0.25
"""A sensor fault, whose slider has another range and other decimals: its first value, and the second [rad]."""


def weaken_the_joint(live):
    """Table, limits and the color of the link follow the button, and then the slider."""
    live.choose("Joint", JOINT)
    live.choose_fault("effort", WEAK)
    live.wait_for_limit("torque", HEALTHY)
    live.press("Break")
    live.wait_for_row(JOINT, "effort")
    assert live.row(JOINT)[:4] == ["FR_calf", "effort", "8 N*m", "no"]
    live.wait_for_limit("torque", WEAK)
    live.wait_for_picture(lambda picture: red_pixels(picture) > 25)
    live.set_severity(WEAKER)
    live.wait_for_row(JOINT, "2 N*m")
    live.wait_for_limit("torque", WEAKER)


def break_the_sensor_and_see_the_attention(live):
    live.choose_fault("dead", 0.0)
    live.press("Break")
    live.wait_for_row(JOINT, "dead")
    assert live.row(JOINT)[3] == "yes"  # the paper's rule
    live.choose_fault("effort", WEAKER)  # that of the fault that is on
    live.page.get_by_role("tab", name="Attention").click()
    live.page.wait_for_function("[...document.images].some(image => image.naturalWidth > 300)")
    live.page.get_by_role("tab", name="Joint").click()


def choose_severities_before_their_faults(live):
    """For one kind after the other, whose sliders differ."""
    for kind, first, severity, shown in (("bias", FIRST_BIAS, BIAS, "0.25 rad"), ("effort", WEAK, PASTED, "14 N*m")):
        live.press("Heal all")
        live.wait_for_row(JOINT, "healthy")
        live.choose_fault(kind, first)
        live.set_severity(severity)
        live.press("Break")
        live.wait_for_row(JOINT, kind)
        assert shown in live.row(JOINT)[2]
    live.wait_for_limit("torque", PASTED)


def start_a_scenario(live):
    """A new episode, whose faults are those of the paper's scenario."""
    live.press("6 torque")
    live.page.get_by_text("Scenario 6 (torque)").wait_for()
    live.page.wait_for_function(
        "() => [...document.querySelectorAll('#umc-faults tbody tr')]"
        ".filter(row => row.innerText.includes('effort\\t8 N*m\\tno')).length >= 4"  # the paper's 4 or 5 joints
    )


def test_a_fault_is_switched_on_seen_changed_and_healed_in_the_page_and_ctrl_c_ends_it(tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    policy = write_fresh(tmp_path, model="transformer_small32")  # stands, having learnt nothing
    arguments = ("--checkpoint", str(policy), "--scenario", "8", "--onset", "5", "--ledger", str(ledger))
    arguments += ("--steps", "100000")  # one episode, however long a busy machine takes
    # a robot that sinks down is not reset
    arguments += ("physics=ovphysx", "env.scene.terrain=flat", "env.terminations.trunk_contact=null")
    with viewer(tmp_path, *arguments) as running, browser_page() as live:
        live.open(running.url)
        assert live.page.locator("#umc-faults tbody tr").count() == 12
        assert live.row(JOINT) == ["FR_calf", "healthy", "", "", ""]
        assert live.page.locator("#umc-faults th").all_inner_texts() == list(HEADS)
        assert live.page.locator("#umc-now th").all_inner_texts() == ["", "now", "min", "max"]
        live.close_notes()
        assert red_pixels(live.wait_for_picture(lambda picture: dark_pixels(picture) > 250)) == 0
        weaken_the_joint(live)
        live.press("Pause Rendering")  # the rest needs no 3D, which takes a CPU most of its time
        break_the_sensor_and_see_the_attention(live)
        live.press("Heal this joint")
        live.wait_for_row(JOINT, "healthy")
        live.wait_for_limit("torque", HEALTHY)
        choose_severities_before_their_faults(live)
        live.press("Reset Episode")
        live.wait_for_row(JOINT, "healthy")
        assert live.page.get_by_text("The robot fell").count() == 0  # it did not
        start_a_scenario(live)
        live.set_number(-1, 0.4)  # turn
        live.press("Push")
        assert live.errors == []
        assert running.interrupt() == 130
        assert "stopped" in running.output()
        assert "Traceback" not in running.output()

    episode = read_ledger(ledger).episodes[0, 0]
    made = [fault for fault in episode.faults if fault.scenario.name == MANUAL_FAULT]
    assert [(fault.joints, fault.severity) for fault in made] == [
        ((JOINT,), {kind: {JOINT: severity}})
        for kind, severity in (("effort", WEAK), ("effort", WEAKER), ("dead", 0.0), ("bias", BIAS), ("effort", PASTED))
    ]
    assert [fault.detected for fault in made] == [False, False, True, False, False]
    assert made[0].end == made[1].onset
    assert made[1].end == made[2].end
    assert episode.limits_at(made[1].onset)[JOINT].effort == WEAKER
    assert not episode.limits_at(made[2].end)
