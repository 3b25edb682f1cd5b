# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-driver where a driver is loaded already: swapped when free, left alone when in use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.nvidia_driver import UNIT
from tests.unit import promises
from tests.unit.driver_hosts import NEW, NEWER, OLD, bare, go, reasons, running, shown
from tests.unit.driver_machine import DriverMachine
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.promises import lines

TO_580 = {"branch": "580"}


def unloaded(done: Any) -> list[str]:
    return [line.rpartition(" ")[2] for line in lines(done) if line.startswith("unload ")]


def test_a_free_driver_is_swapped_in_one_pass() -> None:
    done = promises.check_is_truthful(UNIT, running, TO_580)
    assert (done.state, done.changed, done.pending, done.failure) == ("converged", True, (), None)
    steps = {step.action: step.disruption for step in done.steps}
    assert [action for action, disruption in steps.items() if disruption == "gpu"] == [
        next(action for action in steps if action.startswith("install nvidia-headless-580-server-open")),
        f"stop nvidia-persistenced, to take the driver {OLD} out",
        "unload the module nvidia_uvm",
        "unload the module nvidia",
        "remove /dev/nvidia-uvm: its number may change",
        "remove /dev/nvidia-uvm-tools: its number may change",
        "load the module nvidia",
        "load the module nvidia_uvm",
    ]
    host = running()
    go(host, TO_580)
    assert (host.running, host.active) == (f"{NEWER} open", {"nvidia-persistenced"})
    promises.second_pass_is_quiet(UNIT, host, TO_580)


def test_nodes_of_unified_memory_get_the_number_that_it_has_now() -> None:
    host = running()
    assert host.text("/dev/nvidia-uvm") == "511"
    go(host, TO_580)
    assert "510 nvidia-uvm\n" in (host.text("/proc/devices") or "")
    assert (host.text("/dev/nvidia-uvm"), host.text("/dev/nvidia-uvm-tools")) == ("510", "510")


def test_a_flavour_is_swapped_too() -> None:
    host = running(NEWER)
    done = go(host, {"branch": "580", "open": True})
    assert (done.state, host.running) == ("converged", f"{NEWER} open")
    done = go(host, {"branch": "580", "open": False})
    assert (done.state, host.running) == ("converged", f"{NEWER} proprietary")


def test_the_same_version_is_kept_when_only_the_flavour_differs() -> None:
    host = running(NEW)
    done = go(host, {"branch": "580", "open": True})
    assert (done.state, host.running) == ("converged", f"{NEW} open")


def test_modules_go_leaf_first_and_those_that_were_loaded_come_back() -> None:
    host = running().load("nvidia_drm", "nvidia_peermem")
    done = go(host, TO_580)
    assert done.state == "converged"
    order = unloaded(done)
    assert order[0] == "nvidia_peermem"
    assert order[-1] == "nvidia"
    assert order.index("nvidia_drm") < order.index("nvidia_modeset")
    assert set(host.loaded) == {"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem"}
    promises.second_pass_is_quiet(UNIT, host, TO_580)


def test_a_module_that_does_not_fit_the_new_driver_is_said() -> None:
    host = running()
    host.put(f"/lib/modules/{host.release}/gdrdrv.ko", "")
    host.load("gdrdrv")
    del host.files[f"/lib/modules/{host.release}/gdrdrv.ko"]
    done = go(host, TO_580)
    assert (done.failure, done.pending, host.running) == (None, (), f"{NEWER} open")
    assert "nvidia-persistenced" in host.active
    again = promises.second_pass_is_quiet(UNIT, host, TO_580)
    assert again.state == "converged"
    for outcome in (done, again):
        assert any("gdrdrv was loaded on the former driver" in note and "not found" in note for note in outcome.notes)


def test_services_are_stopped_and_started_again() -> None:
    host = running().serve("nvidia-dcgm", "nvidia-fabricmanager")
    done = go(host, TO_580)
    assert done.state == "converged"
    assert host.active == {"nvidia-persistenced", "nvidia-dcgm", "nvidia-fabricmanager"}
    assert [line for line in lines(done) if line.startswith("start ")] == [
        "start nvidia-dcgm",
        "start nvidia-fabricmanager",
        "start nvidia-persistenced",
    ]


@pytest.mark.parametrize("unit", ["", "gpu-sharing"])
def test_the_mps_daemon_is_no_user_and_comes_back_by_whoever_keeps_it(unit: str) -> None:
    host = running().serve("bcd-mps")
    if unit:
        Records(host).apply(unit, {"mode": "mps"})
    done = go(host, TO_580)
    assert (done.state, host.running, done.pending) == ("converged", f"{NEWER} open", ())
    assert ("bcd-mps" in host.active) == (not unit)


def test_fabric_manager_is_left_to_its_own_unit() -> None:
    host = running().serve("nvidia-fabricmanager")
    Records(host).apply("fabric-manager", {})
    done = go(host, TO_580)
    assert (done.state, host.running) == ("converged", f"{NEWER} open")
    assert "nvidia-fabricmanager" not in host.active


def test_nothing_is_installed_for_a_swap_that_may_not_be_made() -> None:
    host = running()
    done = go(host, TO_580, max_disruption="service")
    assert (reasons(done), done.state) == (["HeldBack"], "progressing")
    assert host.running == f"{OLD} proprietary"
    assert "nvidia-headless-580-server-open" not in host.packages


# -- in use


def with_client() -> DriverMachine:
    host = running()
    host.open_nodes(4242, "python3", "/dev/nvidia0", "/dev/nvidia-uvm")
    return host


def test_where_a_process_uses_the_driver_the_packages_are_installed_and_a_reboot_is_due() -> None:
    done = promises.check_is_truthful(UNIT, with_client, TO_580)
    assert (done.state, reasons(done), done.failure) == ("progressing", ["RebootRequired"], None)
    host = with_client()
    first = go(host, TO_580)
    (wait,) = first.pending
    assert f"driver {OLD} is in use; reboot the node to load branch 580" in wait.message
    assert "process 4242 (python3)" in wait.message
    assert "nvidia-persistenced" not in wait.message
    (exact,) = go(with_client(), {"version": NEWER}).pending
    assert f"driver {OLD} is in use; reboot the node to load version {NEWER} (loaded: " in exact.message
    assert "branch" not in exact.message
    assert host.packages["nvidia-headless-580-server-open"].startswith(NEWER)
    assert host.running == f"{OLD} proprietary"
    assert "nvidia-persistenced" in host.active
    again = promises.second_pass_is_quiet(UNIT, host, TO_580)
    assert reasons(again) == ["RebootRequired"]
    assert NEWER in again.pending[0].message
    host.boot()
    after = go(host, TO_580)
    assert (after.state, after.pending, host.running) == ("converged", (), f"{NEWER} open")
    promises.second_pass_is_quiet(UNIT, host, TO_580)


def test_once_the_process_ends_the_driver_is_swapped_without_a_reboot() -> None:
    host = with_client()
    go(host, TO_580)
    host.end(4242)
    done = go(host, TO_580)
    assert (done.state, host.running) == ("converged", f"{NEWER} open")


def test_check_mode_says_that_a_reboot_comes_first() -> None:
    planned = go(with_client(), TO_580, check=True)
    assert reasons(planned) == ["RebootRequired"]
    assert f"driver {OLD} is in use; reboot the node to load branch 580" in planned.pending[0].message
    assert "process 4242 (python3)" in planned.pending[0].message
    assert not [line for line in lines(planned) if line.startswith(("unload", "load", "stop"))]


@pytest.mark.parametrize("check", [True, False])
def test_no_reboot_is_asked_for_where_nothing_was_installed(check: bool) -> None:
    host = with_client()
    assert reasons(go(host, TO_580, max_disruption="service", check=check)) == ["HeldBack"]
    host.fails["apt-get -y"] = Answer(100, "", "E: Unable to fetch some archives\n")
    if not check:
        done = go(host, TO_580)
        assert (done.pending, done.state) == ((), "progressing")
        assert done.failure is not None
        assert "Unable to fetch some archives" in done.failure.message


def test_a_module_that_something_unseen_uses_is_named() -> None:
    host = running().load("nvidia_drm")
    host.open_nodes(1, "kernel console", "/dev/dri/card0")
    done = go(host, TO_580)
    assert reasons(done) == ["RebootRequired"]
    assert "the module nvidia_drm (refcnt 1)" in done.pending[0].message
    assert host.running == f"{OLD} proprietary"
    assert {"nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset"} == set(host.loaded)


def test_a_service_that_nobody_stops_is_a_user() -> None:
    host = running()
    host.open_nodes(900, "nvidia-imex", "/dev/nvidia0")
    done = go(host, TO_580)
    assert "process 900 (nvidia-imex)" in done.pending[0].message


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        (
            "/etc/cdi/bcd-alloc_1.json",
            json.dumps(
                {"kind": "bcd.dev/gpu", "devices": [{"name": "GPU-1", "annotations": {"bcd.dev/device-id": "GPU-1"}}]}
            ),
            "the allocation alloc_1 has GPU-1",
        ),
        (
            "/var/lib/bcd-hostconfig/releasing.json",
            json.dumps({"version": 1, "releases": {"alloc_2": {"devices": ["GPU-1/s3"]}}}),
            "the allocation alloc_2 has GPU-1/s3",
        ),
        ("/etc/cdi/bcd-alloc_3.json", "{", "/etc/cdi/bcd-alloc_3.json is no JSON, and every GPU counts as held"),
    ],
)
def test_under_a_live_hold_or_a_pending_release_nothing_is_installed(path: str, text: str, said: str) -> None:
    host = running()
    host.put(path, text)
    calls = len(host.calls)
    done = go(host, TO_580)
    assert (done.state, reasons(done), done.changed) == ("progressing", ["Busy"], False)
    assert said in done.pending[0].message
    assert not [call for call in host.calls[calls:] if not call.startswith("write /var/lib/bcd-hostconfig")]
    assert "nvidia-headless-580-server-open" not in host.packages
    del host.files[path]
    assert go(host, TO_580).state == "converged"


def test_an_upgrade_behind_our_back_is_a_mismatch_whatever_the_branch_says() -> None:
    """Same branch, another version: what is loaded and what programs would load do not go together."""
    host = running(NEW, "-open")
    host.open_nodes(4242, "python3", "/dev/nvidia0")
    for name in ("nvidia-headless-580-server-open", "nvidia-utils-580-server", "nvidia-compute-utils-580-server"):
        host.unpack(name, f"{NEWER}-0ubuntu0.24.04.1")
    done = go(host, TO_580)
    assert reasons(done) == ["RebootRequired"]
    assert NEW in done.pending[0].message
    assert NEWER in done.pending[0].message
    host.put("/etc/cdi/bcd-a.json", "{")
    assert reasons(go(host, TO_580)) == ["RebootRequired"]  # nothing is to be installed here
    del host.files["/etc/cdi/bcd-a.json"]
    host.end(4242)
    done = go(host, TO_580)
    assert (done.state, host.running) == ("converged", f"{NEWER} open")


def test_what_only_the_disk_lacks_is_installed_beside_the_loaded_driver() -> None:
    def machine() -> DriverMachine:
        host = running(NEW, "-open")
        host.open_nodes(4242, "python3", "/dev/nvidia0")
        host.erase("nvidia-utils-580-server")
        del host.links["/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"]
        return host

    done = promises.check_is_truthful(UNIT, machine, TO_580)
    assert (done.state, done.pending) == ("converged", ())
    assert {step.disruption for step in done.steps} == {"none"}
    assert go(machine(), TO_580, check=True).pending == ()
    host = machine()
    go(host, TO_580)
    assert (host.running, host.packages["nvidia-utils-580-server"]) == (f"{NEW} open", f"{NEW}-0ubuntu0.24.04.1")


def test_a_driver_that_does_not_go_asks_for_a_reboot_and_is_left_alone_in_this_boot() -> None:
    host = running()
    host.fails = {"rmmod nvidia_uvm": Answer(1, "", "rmmod: ERROR: Module nvidia_uvm is in use\n")}
    done = go(host, TO_580)
    assert reasons(done) == ["RebootRequired"]
    assert "nvidia_uvm is in use" in done.pending[0].message
    assert f"driver {OLD} is in use; reboot the node to load branch 580" in done.pending[0].message
    again = go(host, TO_580)
    assert not [line for line in lines(again) if line.startswith(("unload", "stop"))]
    host.fails.clear()
    host.boot()
    assert go(host, TO_580).state == "converged"
    assert host.running == f"{NEWER} open"


def test_a_driver_that_comes_back_as_it_was_asks_for_a_reboot() -> None:
    host = running()
    host.loads_instead = f"{OLD} proprietary"  # from the initramfs, say
    done = go(host, TO_580)
    assert reasons(done) == ["RebootRequired"]
    assert f"the kernel has {OLD}, proprietary again" in done.pending[0].message
    host.loads_instead = ""
    host.boot()
    assert (go(host, TO_580).state, host.running) == ("converged", f"{NEWER} open")


# -- killed passes


@pytest.mark.parametrize(
    "machine",
    [
        running,
        with_client,
        lambda: running().load("nvidia_drm", "nvidia_peermem").serve("nvidia-dcgm"),
        bare,
        lambda: bare("rocky9"),
        lambda: bare("sles"),
    ],
    ids=["swap", "in use", "swap of all", "bare", "streams", "suse"],
)
def test_a_pass_killed_anywhere_is_finished_by_the_next(machine: Any) -> None:
    assert promises.a_kill_loses_nothing(UNIT, machine, TO_580, shown) > 2


def test_a_pass_killed_anywhere_is_finished_after_a_reboot() -> None:
    def machine() -> DriverMachine:
        return running().load("nvidia_drm").serve("nvidia-dcgm")

    def end(host: FakeHost) -> object:
        assert isinstance(host, DriverMachine)
        return host.running, sorted(host.packages), sorted(host.active), host.text("/initramfs")

    def boot(host: FakeHost) -> None:
        assert isinstance(host, DriverMachine)
        host.boot()

    assert promises.a_kill_loses_nothing(UNIT, machine, TO_580, end, boot) > 5


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("machine", [bare, running, with_client], ids=["bare", "swap", "in use"])
def test_a_pass_killed_inside_the_package_manager_is_finished_by_the_next(machine: Any, count: int) -> None:
    whole = machine()
    end = go(whole, TO_580)
    host = machine()
    host.killed_after = count
    with pytest.raises(Killed):
        go(host, TO_580)
    after = go(host, TO_580)
    assert (after.state, reasons(after), shown(host)) == (end.state, reasons(end), shown(whole))
    assert host.broken == set()
    promises.second_pass_is_quiet(UNIT, host, TO_580)
