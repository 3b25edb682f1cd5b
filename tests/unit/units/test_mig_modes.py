# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-layout over simulated machines: modes, resets, and what is there after a boot."""

from __future__ import annotations

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.predict import PredictedHost
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import Step
from ansible_collections.bettercompute.bcd.plugins.module_utils.front.turns import take_turns
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import section
from ansible_collections.bettercompute.bcd.plugins.module_utils.units import catalog
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.mig_layout import UNIT
from tests.gpu.fake import GpuHost
from tests.gpu.model import Fault
from tests.unit import promises
from tests.unit.mig_hosts import A100, ALL, H100, RTX, SERVICE, go, host_of, made

# -- modes


def test_an_ampere_gpu_that_nothing_holds_is_reset_by_the_driver() -> None:
    host = host_of(A100, A100)
    done = promises.check_is_truthful(UNIT, lambda: host, {"layout": "3g.20gb:2"})
    assert (done.state, [host.machine.instances(gpu) for gpu in (0, 1)]) == ("converged", [["3g.20gb"] * 2] * 2)
    assert not [call for call in host.calls if "reset" in call]


def test_what_holds_an_ampere_gpu_is_stopped_for_its_reset_and_started_again() -> None:
    host = host_of(A100, A100, clients=["nvidia-persistenced", "nv-hostengine"])
    done = go(host, {"gpus": [{"select": {"index": 1}, "layout": "7g.40gb"}]})
    assert (done.state, done.pending, host.machine.instances(1)) == ("converged", (), ["7g.40gb"])
    assert host.machine.cards[0].mig is False
    resets = [call for call in host.calls if "reset" in call]
    assert resets == [f"nvidia-smi --gpu-reset -i {host.machine.cards[1].uuid}"]
    assert sorted(host.machine.clients) == ["nv-hostengine", "nvidia-persistenced"]


def pass_of(host: GpuHost, check: bool) -> dict[str, Outcome]:
    """A pass with a power limit on every GPU and a layout on the second."""
    units = {"gpu-settings": {"powerLimitWatts": 300}, "mig-layout": {"gpus": [SECOND]}}
    seen = PredictedHost(host) if check else host
    return take_turns(section.turns(units, set()), catalog.unit, seen, Records(seen), "gpu")


SECOND = {"select": {"index": 1}, "layout": "empty"}


@pytest.mark.parametrize(
    ("product", "pending", "after"),
    [(A100, False, "MIG mode of GPU 1 is turned on"), (A100, True, "GPU 1 is reset"), (H100, False, "")],
)
def test_check_mode_says_that_a_power_limit_is_set_again_after_a_reset(product: str, pending: bool, after: str) -> None:
    host = host_of(product, product)
    for card in host.machine.cards:
        card.power = 300.0
    host.machine.cards[1].mig_pending = pending
    planned = [line.action for line in pass_of(host, check=True)["gpu-settings"].steps]
    assert planned == ([f"gpu-settings: known after {after}"] if after else [])
    real = pass_of(host, check=False)
    assert {name: outcome.state for name, outcome in real.items()} == dict.fromkeys(real, "converged")
    assert ([card.power for card in host.machine.cards], host.machine.cards[1].mig) == ([300.0, 300.0], True)
    done = [line.action for line in real["gpu-settings"].steps]
    assert done == (["set the power limit of GPU 1 to 300 W"] if after else [])


@pytest.mark.parametrize(("current", "layout", "waits"), [(False, "off", "on"), (True, "empty", "off")])
def test_a_mode_that_waits_for_a_reset_is_gathered_with_the_layout_of_now(
    current: bool, layout: str, waits: str
) -> None:
    host = host_of(A100, A100)
    card = host.machine.cards[0]
    card.mig, card.mig_pending = current, not current
    assert UNIT.gather is not None
    seen = UNIT.gather(host)
    assert [(gpu["layout"], gpu["pending"]) for gpu in seen.found["gpus"]] == [(layout, waits), ("off", None)]
    (wait,) = seen.pending
    assert wait.reason == "RebootRequired"
    assert f"MIG mode of GPU 0 (NVIDIA A100-SXM4-40GB, {card.uuid}) is still" in wait.message
    assert f"becomes {waits} at a GPU reset" in wait.message
    assert "reboot the node" in wait.message


def test_an_unused_nvidia_drm_is_taken_out_of_the_way() -> None:
    host = host_of(A100, drm=True)
    done = go(host, {"layout": "7g.40gb"})
    assert (done.state, host.machine.instances(0), host.machine.drm) == ("converged", ["7g.40gb"], True)


def test_a_used_nvidia_drm_waits_for_a_reboot_and_stops_nothing() -> None:
    host = host_of(A100, drm=True, clients=["nvidia-persistenced"])
    read = host.read
    host.read = lambda path: "2\n" if path == "/sys/module/nvidia_drm/refcnt" else read(path)  # type: ignore[method-assign]
    done = go(host, {"layout": "7g.40gb"})
    (wait,) = done.pending
    assert (done.state, wait.reason) == ("progressing", "RebootRequired")
    assert "nvidia_drm is in use (refcnt 2)" in wait.message
    assert "reboot the node" in wait.message
    assert not [call for call in host.calls if "stop" in call or "rmmod" in call or "reset" in call]


@pytest.mark.parametrize(
    ("passthrough", "code", "why"),
    [(True, 0, "which changed nothing"), (False, 19, "In use by another client"), (False, 3, "Not Supported")],
)
def test_a_reset_that_cannot_be_made_waits_for_a_reboot_and_is_not_repeated(
    passthrough: bool, code: int, why: str
) -> None:
    """In a virtual machine nvidia-smi may exit 0 having reset nothing; elsewhere it says what it could not do."""
    host = host_of(A100, passthrough=passthrough)
    settings = {"layout": "7g.40gb"}
    host.machine.nvml.update({} if passthrough else {"migact": code, "reset": code})
    done = go(host, settings)
    (wait,) = done.pending
    assert (done.state, wait.reason) == ("progressing", "RebootRequired")
    assert "waits for a GPU reset, which" in wait.message
    assert why in wait.message
    assert "reboot the node" in wait.message
    calls = len(host.calls)
    again = go(host, settings)
    assert (again.changed, again.pending, host.calls[calls:]) == (False, done.pending, [])


def test_after_the_reboot_the_boot_service_has_made_the_layout() -> None:
    host = host_of(A100, passthrough=True)
    host.machine.nvml["reset"] = 3
    go(host, {"layout": "4g.20gb,3g.20gb"})
    host.boot()
    assert host.machine.instances(0) == ["3g.20gb", "4g.20gb"]
    done = go(host, {"layout": "4g.20gb,3g.20gb"})
    assert (done.state, done.pending) == ("converged", ())


def test_fabric_manager_is_named_and_not_stopped() -> None:
    host = host_of(A100, clients=["nv-fabricmanager"])
    done = go(host, {"layout": "7g.40gb"})
    (wait,) = done.pending
    assert wait.reason == "RebootRequired"
    assert "nv-fabricmanager" in wait.message
    assert host.machine.clients == ["nv-fabricmanager"]


def test_a_reset_is_tried_again_when_something_else_holds_the_gpu() -> None:
    host = host_of(A100, clients=["nv-fabricmanager"])
    go(host, {"layout": "7g.40gb"})
    host.machine.clients.clear()
    assert go(host, {"layout": "7g.40gb"}).state == "converged"


@pytest.mark.parametrize("product", [H100, "GH200-96GB", "B200-180GB", "GB300", RTX])
def test_a_mode_that_stays_pending_from_hopper_on_waits_and_nothing_is_reset(product: str) -> None:
    host = host_of(product, clients=["nvidia-persistenced"], drm=True)
    host.machine.nvml["migact"] = 19
    done = go(host, {"layout": "empty"})
    assert [wait.reason for wait in done.pending] == ["RebootRequired"]
    assert "stays pending" in done.pending[0].message
    assert not [call for call in host.calls if "reset" in call or "systemctl st" in call or "mod" in call.split()[0]]


def test_what_another_gpus_process_is_does_not_count_for_a_reset() -> None:
    """It is no holder of this GPU: it is not to be ended, and a reset that failed beside it is not tried again."""
    host = host_of(A100, A100, clients=["nv-fabricmanager"])
    host.machine.occupy(0, pid=4242, name="python3")
    settings = {"gpus": [{"select": {"index": 1}, "layout": "7g.40gb"}]}
    done = go(host, settings)
    (wait,) = done.pending
    assert wait.reason == "RebootRequired"
    assert "end nv-fabricmanager, which has the GPUs open" in wait.message
    assert "python3" not in wait.message
    host.machine.free(0)
    calls = len(host.calls)
    assert go(host, settings).pending == done.pending
    assert host.calls[calls:] == []


@pytest.mark.parametrize("product", [A100, H100])
def test_every_change_names_its_gpu_by_the_uuid(product: str) -> None:
    """Indices move when a GPU comes or goes between the look and the change."""
    host = host_of(product, product, clients=["nvidia-persistenced"])
    small, half = ("1g.5gb", "3g.20gb") if product == A100 else ("1g.10gb", "3g.40gb")
    last = host.machine.cards[1].uuid
    for layout in (f"1c.{half}:2,{small}", f"{small}:2,2c.{half}", "off"):
        assert go(host, {"gpus": [{"select": {"index": 1}, "layout": layout}]}).state == "converged"
    changes = [call.split() for call in host.calls if call.startswith("nvidia-smi")]
    kinds = {"-mig", "-cgi", "-cci", "-dci", "-dgi"} | ({"--gpu-reset"} if product == A100 else set())
    assert {word for words in changes for word in words} >= kinds
    assert [words[words.index("-i") + 1] for words in changes] == [last] * len(changes)


def test_a_gpu_that_goes_during_a_pass_does_not_lend_its_index() -> None:
    host = host_of(H100, H100)
    gone, other = host.machine.cards
    other.mig = other.mig_pending = True
    apply = host.apply

    def vanish(step: Step) -> None:
        if "-cgi" in step.argv and gone in host.machine.cards:
            host.machine.cards.remove(gone)
        apply(step)

    host.apply = vanish  # type: ignore[method-assign]
    go(host, {"gpus": [{"select": {"uuid": gone.uuid}, "layout": "7g.80gb"}]})
    assert (host.machine.cards, other.instances) == ([other], [])


# -- after a boot


def test_a_hopper_host_has_its_layout_again_after_a_reboot() -> None:
    host = host_of(H100, A100)
    settings = {
        "gpus": [
            {"select": {"index": 0}, "layout": "3g.40gb,1c.2g.20gb:2,1g.10gb"},
            {"select": {"index": 1}, "layout": "all-1g.5gb"},
        ]
    }
    assert go(host, settings).state == "converged"
    shown = [host.machine.instances(gpu) for gpu in (0, 1)]
    host.boot()
    assert [host.machine.instances(gpu) for gpu in (0, 1)] == shown
    promises.second_pass_is_quiet(UNIT, host, settings)


@pytest.mark.parametrize(
    ("product", "layout", "more"),
    [
        (H100, "1g.10gb:2", {}),
        (H100, "1c.3g.40gb:2", {}),  # a third would have room
        (H100, "2c.4g.40gb,1c.3g.40gb,1c.3g.40gb", {"gi_ids": "swapped"}),
        (A100, "1g.5gb:2", {"driver": "460.106.00"}),  # whose nvidia-smi is not told where
        (A100, "2c.3g.20gb", {"driver": "460.106.00"}),
    ],
)
def test_the_boot_service_makes_nothing_twice(product: str, layout: str, more: dict[str, str]) -> None:
    host = host_of(product, product, **more)
    settings = {"gpus": [{"select": {"index": 0}, "layout": layout}]}
    go(host, settings)
    go(host, settings)  # by now the ids of all instances are known
    shown, card = host.machine.instances(0), host.machine.cards[0]
    instances = list(card.instances)
    for _again in range(2):
        assert host.play(("systemctl", "restart", "bcd-mig.service")).rc == 0
        assert host.play(("systemctl", "start", "bcd-mig.service")).rc == 0
    assert (card.instances, host.machine.instances(0)) == (instances, shown)
    promises.second_pass_is_quiet(UNIT, host, settings)
    host.boot()
    assert host.play(("systemctl", "start", "bcd-mig.service")).rc == 0
    assert host.play(("systemctl", "restart", "bcd-mig.service")).rc == 0
    assert host.machine.instances(0) == shown


def test_an_old_driver_is_not_told_the_starts_at_boot_either() -> None:
    """The largest come first, so that where it puts them there is room for all."""
    host = host_of(A100, driver="460.106.00")
    made(host, 0, "1g.5gb", "3g.20gb", "2g.10gb")
    settings = {"layout": "1g.5gb,3g.20gb,2g.10gb"}
    go(host, settings)
    lines = [line.split(" -cgi ")[1] for line in (host.text(SERVICE) or "").splitlines() if " -cgi " in line]
    assert lines == ["3g.20gb -C", "2g.10gb -C", "1g.5gb -C"]
    host.boot()
    assert sorted(host.machine.instances(0)) == ["1g.5gb", "2g.10gb", "3g.20gb"]
    promises.second_pass_is_quiet(UNIT, host, settings)


def test_the_boot_service_leaves_a_host_alone_that_has_some_of_its_instances() -> None:
    """What is lacking is made by the next pass, beside those that are there."""
    host = host_of(H100)
    settings = {"layout": "1c.3g.40gb:2,1g.10gb:2"}
    go(host, settings)
    shown, card = host.machine.instances(0), host.machine.cards[0]
    del card.instances[0], card.instances[-1].cis[0]
    left = list(card.instances)
    host.play(("systemctl", "restart", "bcd-mig.service"))
    assert card.instances == left
    assert go(host, settings).state == "converged"
    assert host.machine.instances(0) == shown
    assert all(one in card.instances for one in left)


def test_the_boot_service_brings_back_what_a_driver_that_was_loaded_anew_has_lost() -> None:
    host = host_of(H100)
    go(host, {"layout": "1c.3g.40gb:2"})
    go(host, {"layout": "1c.3g.40gb:2"})
    host.machine.reload()
    assert host.machine.instances(0) == []
    host.play(("systemctl", "restart", "bcd-mig.service"))
    assert host.machine.instances(0) == ["3g.40gb: 1c 1c"]


def test_the_boot_service_comes_before_what_opens_gpus_and_runs_nvidia_smi_alone() -> None:
    host = host_of(H100)
    go(host, ALL)
    text = host.text(SERVICE) or ""
    lines = text.splitlines()
    assert lines[0].startswith("# Managed by bettercompute.bcd")
    before = next(line for line in lines if line.startswith("Before="))
    for name in ("containerd", "docker", "crio", "podman", "kubelet", "nvidia-cdi-refresh", "bcd-mps", "slurmd"):
        assert f"{name}.service" in before
    assert "nvidia-persistenced.service" in next(line for line in lines if line.startswith("After="))
    starts = [line for line in lines if line.startswith("ExecStart")]
    assert len(starts) == 8
    assert all(line.startswith("ExecStart=-/usr/") and f"-i {host.machine.cards[0].uuid} " in line for line in starts)


def test_the_service_keeps_the_commands_of_gpus_that_are_not_seen() -> None:
    host = host_of(H100, H100)
    go(host, ALL)
    gone = host.machine.cards[1].uuid
    had = [line for line in (host.text(SERVICE) or "").splitlines() if gone in line]
    host.machine.cards.pop()
    go(host, {"layout": "7g.80gb"})
    text = (host.text(SERVICE) or "").splitlines()
    assert [line for line in text if gone in line] == had != []


def test_the_layout_stays_when_the_unit_leaves() -> None:
    host = host_of(H100)
    go(host, ALL)
    text = host.text(SERVICE)
    done = go(host, None)
    assert (done.state, done.changed, host.text(SERVICE)) == ("converged", False, text)
    assert host.machine.instances(0) == ["1g.10gb"] * 7
    assert any("bcd-mig.service" in note for note in done.notes)


def test_a_busy_gpu_has_after_a_boot_what_it_has_now() -> None:
    """What its allocation starts again with: the new layout comes once that has ended."""
    host = host_of(H100)
    go(host, {"layout": "3g.40gb:2"})
    host.machine.occupy(0, gi=host.machine.cards[0].instances[0].id)
    go(host, {"layout": "all-1g.10gb"})
    host.boot()
    assert host.machine.instances(0) == ["3g.40gb", "3g.40gb"]


def test_nothing_is_stopped_for_a_reset_that_is_held_back() -> None:
    host = host_of(A100, clients=["nvidia-persistenced"], drm=True)
    host.machine.cards[0].mig_pending = True
    held = go(host, {"layout": "7g.40gb"}, max_disruption="service")
    assert {wait.reason for wait in held.pending} == {"HeldBack"}
    assert not [call for call in host.calls if call.startswith(("nvidia-smi", "systemctl st", "rmmod", "modprobe"))]
    assert (host.machine.clients, host.machine.drm) == (["nvidia-persistenced"], True)


def test_a_mode_that_somebody_set_to_change_is_set_back() -> None:
    """The GPU shows its layout, and would lose it at the next reset."""
    host = host_of(A100)
    settings = {"layout": "7g.40gb"}
    go(host, settings)
    host.machine.cards[0].mig_pending = False
    done = go(host, settings)
    assert (done.state, done.changed) == ("converged", True)
    assert host.machine.cards[0].mig_pending is True
    assert host.machine.instances(0) == ["7g.40gb"]
    promises.second_pass_is_quiet(UNIT, host, settings)


@pytest.mark.parametrize("refused", [False, True])
def test_one_that_waits_for_its_reset_beside_one_that_is_still_to_be_set(refused: bool) -> None:
    """What is stopped for the first reset stays so for the second, and comes back, also where there is no second."""
    host = host_of(A100, A100, clients=["nvidia-persistenced", "nv-hostengine"], drm=True)
    host.machine.cards[0].mig_pending = True
    host.machine.nvml["migact"] = 19  # the driver itself resets no GPU here
    if refused:
        host.machine.faults.append(
            Fault(f"{host.machine.cards[1].uuid} -mig 1", rc=19, text="Unable to enable MIG Mode: In use\n")
        )
    done = go(host, {"layout": "7g.40gb"})
    assert (done.state == "converged") is not refused
    assert host.machine.instances(0) == ["7g.40gb"]
    assert host.machine.instances(1) == ([] if refused else ["7g.40gb"])
    assert (sorted(host.machine.clients), host.machine.drm) == (["nv-hostengine", "nvidia-persistenced"], True)
    assert len([call for call in host.calls if "systemctl stop nvidia-persistenced" in call]) == 1
    assert len([call for call in host.calls if "systemctl start nvidia-persistenced" in call]) == 1
