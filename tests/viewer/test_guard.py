# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The viewer takes what its own page sends, and survives what anybody else does."""

import asyncio
import contextlib
import math
import random
import time
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import msgspec
import pytest
import torch
import viser
import websockets
from isaaclab.envs import mdp as lab
from umc.mdp import JointRow, SeverityRange
from umc.utils.errors import UmcError
from umc.viewer import guard
from umc.viewer import panel as panel_module
from umc.viewer.guard import (
    MAX_PAGES,
    MAX_RATE,
    MessageGuard,
    check_host,
    guard_requests,
    is_own_page,
    own_names,
    paced,
)
from umc.viewer.panel import Panel
from umc.viewer.steering import LARGEST, PUSH, Steering

JOINTS, KINDS = ("FL_calf_joint", "FR_calf_joint"), ("effort", "rom", "dead")


class Injector:
    """A fault injector without a simulation."""

    joint_names, kinds, num_envs = JOINTS, KINDS, 3

    def severity_range(self, joint, kind):
        return None if kind == "dead" else SeverityRange(0.5, 25.0, 8.0, "N*m")

    def rows(self, env_id):
        assert 0 <= env_id < self.num_envs
        return [JointRow(joint, (), (), "", False, None, joint) for joint in JOINTS]

    def inject(self, env_id, joint, kind, severity):
        assert joint in JOINTS
        assert severity is None or 0.5 <= severity <= 25.0

    def clear(self, env_id, joint=None):
        assert joint in (None, *JOINTS)


def steered():
    """A velocity command of three robots, 0.5 m/s straight ahead."""
    ranges = lab.UniformVelocityCommandCfg.Ranges(lin_vel_x=(0.5, 0.5), lin_vel_y=(0.0, 0.0), ang_vel_z=(0.0, 0.0))
    return SimpleNamespace(cfg=SimpleNamespace(ranges=ranges), vel_command_b=torch.tensor([[0.5, 0.0, 0.0]] * 3))


def walking(command, pushed):
    """A simulation of three robots that have a command; pushes change the second's velocity."""
    robot = SimpleNamespace(
        device="cpu",
        data=SimpleNamespace(root_vel_w=SimpleNamespace(torch=torch.zeros(3, 6))),
        write_root_velocity_to_sim_index=lambda root_velocity, env_ids: pushed.append((env_ids, root_velocity)),
    )
    manager = SimpleNamespace(get_term=lambda name: {"base_velocity": command}[name])
    return SimpleNamespace(step_dt=0.02, device="cpu", cfg=None, command_manager=manager, scene={"robot": robot})


@pytest.fixture
def page(monkeypatch):
    """A viser server with the controls of the page."""
    monkeypatch.setattr(panel_module, "fault_state", lambda env: None)
    guard_requests(own_names("localhost"))
    server = viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
    command = steered()
    panel = Panel(server, walking(command, []), Injector(), "test", None)
    MessageGuard(server)
    yield SimpleNamespace(server=server, panel=panel, port=server.get_port(), command=command)
    server.stop()


def connect(page, **options):
    address = f"ws://127.0.0.1:{page.port}"
    return websockets.connect(address, subprotocols=[f"viser-v{viser.__version__}"], compression=None, **options)


CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [1.0, 1.0, 1.0],
    "fov": 0.8,
    "near": 0.1,
    "far": 100.0,
    "image_height": 100,
    "image_width": 100,
    "look_at": [0.0, 0.0, 0.0],
    "up_direction": [0.0, 0.0, 1.0],
}
"""What a page sends first."""


def test_a_page_steers_all_robots_for_good_and_pushes_the_one_that_is_shown():
    command, pushed = steered(), []
    gui = MagicMock()
    steering = Steering(gui, cast(Any, walking(command, pushed)), lambda act, *values: act(*values), lambda: 1)
    assert [call.args[:3] for call in gui.add_slider.call_args_list] == [
        (label, -LARGEST, LARGEST) for label in ("Forward [m/s]", "Left [m/s]", "Turn [rad/s]")
    ]
    moved = [call.args[0] for call in gui.add_slider.return_value.on_update.call_args_list]
    moved[1](SimpleNamespace(target=SimpleNamespace(value=-0.3)))
    steering.steer(2, 0.8)
    assert command.vel_command_b.tolist() == [pytest.approx([0.5, -0.3, 0.8])] * 3
    assert command.cfg.ranges.lin_vel_y == (-0.3, -0.3)  # what a reset draws from
    gui.add_button.return_value.on_click.call_args.args[0](None)
    ((env_ids, velocity),) = pushed
    assert env_ids.tolist() == [1]
    assert 0.0 < velocity.abs().max() <= PUSH
    assert not velocity[:, 2:].any()


def test_a_severity_is_injected_once_its_slider_rests(page, monkeypatch):
    injected, panel = [], page.panel
    monkeypatch.setattr(panel._injector, "inject", lambda *one: injected.append(one), raising=False)
    rows = [JointRow(joint, ("effort",), (8.0,), "", False, None, joint) for joint in JOINTS]
    monkeypatch.setattr(panel._injector, "rows", lambda env_id: rows, raising=False)

    def refresh():
        panel.do_clicks()
        panel.refresh(None)
        panel.do_clicks()

    for severity in (9.0, 10.0, 11.0, 12.0):
        panel._severity.value = severity
        refresh()
        assert not injected, "a slider that moves has injected"
    for _ in range(3):
        refresh()
    assert injected == [(0, JOINTS[0], "effort", 12.0)]
    panel._severity.value = 13.0
    panel._show_env(1)
    for _ in range(3):
        refresh()
    assert injected[1:] == [(0, JOINTS[0], "effort", 13.0)], "another env has the fault"


def some_value(random):
    words = (*JOINTS, *KINDS, "0", "2", "7", "1 sensor", "x" * 5000, "", "mean of all")
    plain = (None, True, False, math.nan, math.inf, -1e300, 3, 2**62, 12.5, b"x", [], {}, [1, "2"], {"a": [None]})
    return random.choice((*words, *plain))


def random_message(random, uuids):
    uuid = random.choice([*uuids] * 3 + ["unknown", 5, None, ["x"]])
    if random.random() < 0.9:
        name = random.choice(("value",) * 8 + ("visible", "options", "label", "uuid", "__class__"))
        updates = random.choice(({name: some_value(random)},) * 20 + ({}, [], None, {5: 1}))
        return {"type": "GuiUpdateMessage", "uuid": uuid, "updates": updates}
    return random.choice((
        {"type": "FileTransferStartUpload", "source_component_uuid": uuid, "transfer_uuid": "t", "filename": "f",
         "mime_type": "m", "part_count": 10**9, "size_bytes": 10**12},
        {"type": "GuiButtonHoldMessage", "uuid": uuid, "frequency": 1.0},
        {"type": "GuiFormSubmitMessage", "uuid": uuid},
        {"type": "ShareUrlRequest"},
        {**CAMERA, "fov": random.choice(("wide", math.nan) + (0.5,) * 20)},
    ))  # fmt: skip


def test_random_messages_leave_the_viewer_running_and_its_controls_valid(page, monkeypatch, capsys):
    shared = []
    monkeypatch.setattr(guard, "MAX_RATE", 1e6)
    monkeypatch.setattr(page.server, "request_share_url", lambda *_: shared.append(1))
    chance = random.Random(0)
    panel = page.panel

    async def attack():
        sent = 0
        while sent < 1_000:  # a message that cannot be decoded ends the connection
            with contextlib.suppress(websockets.ConnectionClosed):
                async with connect(page) as socket:
                    await socket.send(msgspec.msgpack.encode(CAMERA))
                    while sent < 1_000:
                        uuids = list(page.server.gui._gui_input_handle_from_uuid)
                        await socket.send(msgspec.msgpack.encode(random_message(chance, uuids)))
                        sent += 1
                        if sent % 100 == 0:  # the simulation's thread
                            await asyncio.sleep(0)
                            panel.do_clicks()
                            panel.refresh(None)
        for garbage in (b"", b"\xc1", msgspec.msgpack.encode([1]), msgspec.msgpack.encode({"type": "None"}), "text"):
            async with connect(page) as socket:
                await socket.send(garbage)

    async def choose():
        """What a page does: it still works."""
        async with connect(page) as socket:
            await socket.send(msgspec.msgpack.encode(CAMERA))
            uuid = panel._selected._impl.uuid
            await socket.send(
                msgspec.msgpack.encode({"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": new}})
            )
            end = time.monotonic() + 30.0
            while panel._selected.value != new and time.monotonic() < end:
                await asyncio.sleep(0.02)

    asyncio.run(attack())
    panel.do_clicks()
    panel.refresh(None)
    assert panel._selected.value in JOINTS
    assert panel._kind.value in KINDS
    assert 0.5 <= panel._severity.value <= 25.0
    assert 0 <= panel.env_id < Injector.num_envs
    assert page.command.vel_command_b.abs().max() <= LARGEST
    assert not page.server.gui._current_file_upload_states
    assert not shared
    assert "viewer: ignored a message of a page" in capsys.readouterr().out
    new = JOINTS[1 - JOINTS.index(panel._selected.value)]
    asyncio.run(choose())
    assert panel._selected.value == new


def test_no_more_than_16_pages_are_connected_at_once(page, monkeypatch, capsys):
    monkeypatch.setattr(guard, "NOTES", guard._Notes())

    async def refusal(socket):
        try:
            await socket.send(msgspec.msgpack.encode(CAMERA))
            await asyncio.wait_for(socket.recv(), 30.0)  # the scene
        except websockets.ConnectionClosed as error:
            return error.rcvd.code
        return None

    async def ask():
        pages = [await connect(page) for _ in range(MAX_PAGES)]
        assert {await refusal(one) for one in pages} == {None}
        async with connect(page) as one_more:
            assert await refusal(one_more) == 1013
        await pages.pop().close()
        end = time.monotonic() + 30.0
        while len(pages) < MAX_PAGES and time.monotonic() < end:
            one = await connect(page)
            pages += [] if await refusal(one) else [one]
        await asyncio.gather(*(one.close() for one in pages))
        return len(pages)

    assert asyncio.run(ask()) == MAX_PAGES
    assert f"ignored a connection of a page: {MAX_PAGES} pages are connected" in capsys.readouterr().out


def test_a_page_that_sends_too_fast_waits(monkeypatch):
    now, waits = 100.0, []

    async def sleep(seconds):
        nonlocal now
        now += seconds
        waits.append(seconds)

    async def receive():
        return "message"

    monkeypatch.setattr(guard, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(guard, "asyncio", SimpleNamespace(sleep=sleep))
    recv, burst = paced(receive), int(MAX_RATE)
    for number in range(3 * burst):
        assert asyncio.run(recv()) == "message"
        assert number < burst - 1 or now - 100.0 == pytest.approx((number - burst) / MAX_RATE, abs=0.01)
    waits.clear()
    for _ in range(3 * burst):
        now += 1.1 / MAX_RATE
        asyncio.run(recv())
    assert sum(waits) < 0.01


def test_a_connection_of_a_page_is_slowed_down(page, monkeypatch):
    waits = []

    async def wait(seconds):
        waits.append(seconds)

    monkeypatch.setattr(guard, "MAX_RATE", 1e-3)
    monkeypatch.setattr(guard, "asyncio", SimpleNamespace(sleep=wait))

    async def send():
        async with connect(page) as socket:
            end = time.monotonic() + 30.0
            while len(waits) < 3 and time.monotonic() < end:
                await socket.send(msgspec.msgpack.encode(CAMERA))
                await asyncio.sleep(0.05)

    asyncio.run(send())
    assert len(waits) >= 3
    assert waits[0] > 900.0  # at one message in 1,000 s


def test_a_message_of_a_megabyte_ends_its_connection(page):
    async def send():
        async with connect(page) as socket:
            await socket.send(b"x" * 2**20)
            with contextlib.suppress(websockets.ConnectionClosedOK):
                while True:
                    await asyncio.wait_for(socket.recv(), 30.0)

    with pytest.raises(websockets.ConnectionClosedError, match="1009"):
        asyncio.run(send())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example:{port}"}, 403),  # a name that is made to lead here
        ({"Host": "evil.example:{port}", "Origin": "http://evil.example:{port}"}, 403),
    ],
)
def test_websocket_and_page_are_for_the_viewers_own_page(page, headers, status):
    headers = {name: value.format(port=page.port) for name, value in headers.items()}

    async def ask():
        reader, writer = await asyncio.open_connection("127.0.0.1", page.port)
        lines = {"Host": f"127.0.0.1:{page.port}", **headers}
        writer.write(("GET / HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n").encode())
        answer = await reader.readline()
        writer.close()
        return int(answer.split()[1])

    async def open_websocket():
        try:
            async with connect(page, additional_headers=headers):
                return 200
        except websockets.InvalidStatus as error:
            return error.response.status_code

    assert asyncio.run(ask()) == status
    if "Host" not in headers:  # websockets sets its own
        assert asyncio.run(open_websocket()) == status


def test_names_and_digits_are_told_apart():
    names = own_names("robot.lan")
    for host in ("localhost:8080", "ROBOT.lan", "192.168.0.7:8080", "[::1]:8080"):
        assert is_own_page(host, None, names)
        assert is_own_page(host, f"http://{host}", names)
        assert not is_own_page(host, "http://other", names)
    for host in (None, "", "evil.example", "127.0.0.1.evil.example:8080", "[::1", "robot.lan.evil.example"):
        assert not is_own_page(host, None, names)


def test_an_address_of_another_machine_is_refused_at_once():
    for host in ("localhost", "0.0.0.0", "127.0.0.1"):
        check_host(host, 8080)
    for host in ("203.0.113.7", "no-such-host.invalid", "a" * 300, ""):
        with pytest.raises(UmcError, match=r"is no address of this machine \(.+\); give localhost"):
            check_host(host, 8080)
