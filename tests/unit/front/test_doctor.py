# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor over hosts in memory: what its looks see there, from files and programs to findings."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core import host as machine
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.records import Records
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.front import doctor, standing, status, through_helper
from ansible_collections.bettercompute.bcd.plugins.module_utils.intent.memory import MEMORY, RECORD, Memory, render
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.doctor_host import WRITTEN
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.installed import CONFIG, SOCKET
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import TOKEN_FILE
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.release import VERSION
from tests.cluster.control_plane import Cluster
from tests.gpu.fake import GpuHost
from tests.pki import ControlPlane
from tests.unit import hold_host
from tests.unit.fake_host import FakeHost
from tests.unit.member_host import member
from tests.unit.shown_units import shown_units

STATE = "/var/lib/bcd-hostconfig"
UNITS = "/etc/systemd/system"
SCRIPT = '#!/usr/bin/python3 -IB\nsys.path.insert(0, "/usr/lib/bcd/{}")\n'
DOWN = Answer(0, "ActiveState=inactive\nNeedDaemonReload=no\n")
FAILED = Answer(0, "ActiveState=failed\nNeedDaemonReload=no\n")
RUNS = ("bcd-helper.socket", "bcd-agent.timer")
MIB = 1 << 20
PLANE = ControlPlane()


def systemctl(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """The helper's socket and the agent's timer are up and enabled; the agent ended five minutes ago."""
    name = argv[-1]
    if "--" in argv:
        return shown_units(argv, lambda unit: "active" if unit in RUNS else "inactive")
    if argv[1] == "show":
        return Answer(0, "86100000000\n")
    if argv[1] == "is-enabled":
        return Answer(0, "enabled\n") if name in RUNS else Answer(1, "static\n")
    return Answer(0, "active\n") if name in RUNS else Answer(3, "inactive\n")


def df(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
    return Answer(
        0, f"Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda1 8000000 1 7000000 1% {argv[-1]}\n"
    )


def getent(_host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    return Answer(0, "bcd:x:998:deploy\n")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> FakeHost:
    """A host that was enrolled with both pins and a join record, and waits for nothing."""
    enrolled = FakeHost(
        {
            "/run/systemd/system": "",
            CONFIG: PLANE.config(join=True),
            RECORD: json.dumps(PLANE.join_response("node-1", 1, [PLANE.root])),
            **{
                f"{UNITS}/bcd-{name}": ""
                for name in ("helper.socket", "helper.service", "agent.timer", "agent.service")
            },
            SOCKET: "",
            "/usr/local/sbin/bcd": SCRIPT.format(VERSION),
            "/etc/passwd": "root:x:0:0::/root:/bin/sh\nbcd:x:998:998::/:/usr/sbin/nologin\n",
            "/proc/uptime": "86400.00 1000.00\n",
            "/boot/vmlinuz": "",
            f"{STATE}/lock": "",
        },
        programs={"systemctl": systemctl, "getent": getent, "df": df, "timedatectl": lambda *_: Answer(0, "yes\n")},
    )
    monkeypatch.setattr(machine, "Host", lambda: enrolled)
    return enrolled


def findings(host: FakeHost) -> list[dict[str, str]]:
    """All that is found, after which the host is as it was."""
    files = dict(host.files)
    found: list[dict[str, str]] = doctor.doctor_result()["findings"]
    assert (host.files, host.calls) == (files, [])
    return found


def bad(host: FakeHost) -> list[tuple[str, str]]:
    """What is not ok: check and message."""
    return [(one["check"], one["message"]) for one in findings(host) if one["level"] != "ok"]


def test_an_enrolled_host_on_which_nothing_is_wrong(host: FakeHost) -> None:
    result = doctor.doctor_result()
    assert (result["changed"], result["state"]) == (False, "ok"), result["findings"]
    assert {one["check"]: one["message"] for one in result["findings"]} == {
        "agent": "bcd agent keeps what was applied",
        "clock": "the clock is synchronised",
        "config": "/etc/bcd/config.toml is root's, and says what is understood",
        "helper": "bcd helper answers root and the group bcd (deploy)",
        "node-binding": "root's join record binds this host to the node node-1",
        "signed-intent": "command_root_sha256 in root's config.toml demands a signed spec",
    }
    assert result["report"][-1] == "ok: 0 failures, 0 warnings, 6 ok"


Change = Callable[[FakeHost], object]


def put(path: str, text: str = "", mode: int = 0o644, uid: int = 0) -> Change:
    return lambda host: host.files.__setitem__(path, File(text, mode, uid))


def folder(path: str, mode: int = 0o755, uid: int = 0) -> Change:
    return lambda host: host.files.__setitem__(path, File("", mode, uid, regular=False))


def without(*paths: str) -> Change:
    return lambda host: [host.files.pop(path) for path in paths]


def says(program: str, answer: Answer, only: str = "") -> Change:
    def change(host: FakeHost) -> None:
        before = host.programs[program]
        host.programs[program] = lambda host, argv: answer if only in " ".join(argv) else before(host, argv)

    return change


BY_ANOTHER = json.dumps(ControlPlane().join_response("node-1", 1, []))


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        (put(CONFIG, "# no pins\n"), "signed-intent", "bcd helper applies host units unsigned unless the node itself"),
        (put(CONFIG, "# no pins\n"), "node-binding", "nothing is signed on this host"),
        (put(CONFIG, PLANE.config(), uid=998), "config", "must be a regular file root owns that no one else can write"),
        (put(CONFIG, PLANE.config(), 0o664), "config", "must be a regular file root owns that no one else can write"),
        (lambda host: host.links.update({CONFIG: "/tmp/x"}), "config", "must be a regular file root owns"),
        (folder("/etc/bcd", 0o775), "config", "/etc/bcd is not a directory only root can write"),
        (put(CONFIG, "command_root_sha256 = 'ab'\n"), "signed-intent", "takes SHA-256 digests of 64 hex digits"),
        (put(CONFIG, PLANE.config(join=True, more="[kubernetes]\nallowed_clusters = 'x'")), "allowed-clusters", "'x'"),
        (put(RECORD, "{"), "signed-intent", f"{RECORD} is no join record"),
        (put(RECORD, BY_ANOTHER), "signed-intent", "the join record"),
        (put(MEMORY, "{}"), "signed-intent", f"{MEMORY} is not a record of version 1"),
        (without(RECORD), "node-binding", "no join record binds this host to a node"),
        (says("systemctl", DOWN, "-- bcd-helper.socket"), "helper", "is inactive: systemctl"),
        (says("systemctl", Answer(1, "disabled\n"), "is-enabled bcd-helper.socket"), "helper", "is disabled at"),
        (says("systemctl", FAILED, "-- bcd-helper.service"), "helper", "service has failed"),
        (without(SOCKET), "helper", "/run/bcd/helper.sock is not there"),
        (says("getent", Answer(2, "")), "helper", "there is no group bcd"),
        (says("getent", Answer(0, "bcd:x:998:\n")), "helper", "nobody is in the group bcd"),
        (says("systemctl", DOWN, "-- bcd-agent.timer"), "agent", "is inactive: systemctl"),
        (says("systemctl", Answer(0, "0\n"), "ExecMainExit"), "agent", "the agent has made no pass in this boot"),
        (says("systemctl", Answer(0, "72000000000\n"), "ExecMainExit"), "agent", "made its last pass 240 minutes ago"),
        (put("/usr/local/sbin/bcd", SCRIPT.format("0.0.9+aa")), "program", "on this host has version 0.0.9+aa"),
        (without("/usr/local/sbin/bcd"), "program", "/usr/local/sbin/bcd is not there"),
        (put(f"{STATE}/applied.json", "{"), "records", f"{STATE}/applied.json is not a record of version 1"),
        (put(f"{STATE}/asked.json", "{"), "records", f"{STATE}/asked.json is not a record of version 1"),
        (put(f"{STATE}/k8s-join.json", "{"), "records", f"{STATE}/k8s-join.json is not a record of version 1"),
        (lambda host: Records(host).owe("cpu", ("update-grub",)), "debts", "what had to follow (update-grub)"),
        (folder("/etc/sysctl.d", 0o777), "root-directories", "/etc/sysctl.d is not a directory only root can write"),
        (folder("/etc/cdi", uid=998), "root-directories", "/etc/cdi is not a directory only root can write"),
        (folder(STATE, 0o775), "root-directories", f"{STATE} is not a directory only root can write"),
        (put(TOKEN_FILE, "abcdef.0123456789abcdef", 0o644), "secrets", f"{TOKEN_FILE} has the mode 0644"),
        (put(MEMORY, render(Memory("node-1")), 0o644), "secrets", f"{MEMORY} has the mode 0644"),
        (put(f"{STATE}/asked.json", '{"version": 1}', 0o640), "secrets", f"{STATE}/asked.json has the mode 0640"),
        (says("df", Answer(0, "x\n/dev/vda1 8000000 1 1000 1% /boot\n"), "/boot"), "disk", "/boot has 0 MiB free"),
        (says("df", Answer(0, "x\n/dev/vda1 8000000 1 51200 1% /\n"), "/var/lib"), "disk", "/var/lib has 50 MiB free"),
        (says("timedatectl", Answer(0, "no\n")), "clock", "the clock is not synchronised"),
        (lambda host: host.files.update({"/sys/class/iommu/dmar0": File(""), "/sys/kernel/iommu_groups/0": File("")}),
         "iommu", "no vfio-pci driver is loaded"),
        (lambda host: Records(host).apply("iommu", {}), "iommu", "the section asks for an IOMMU, and none is on"),
    ],
)  # fmt: skip
def test_each_thing_that_goes_wrong(host: FakeHost, change: Change, check: str, words: str) -> None:
    change(host)
    host.calls.clear()
    found = bad(host)
    assert [message for name, message in found if name == check and words in message], found


@pytest.mark.parametrize("path", WRITTEN)
def test_a_link_in_the_place_of_each_directory_that_root_writes_below(host: FakeHost, path: str) -> None:
    host.links[path] = "/home/bcd/evil"
    assert ("root-directories", True) in [(name, message.startswith(f"{path} is not a")) for name, message in bad(host)]


def test_a_file_in_the_place_of_a_directory_is_none_that_root_writes_below(host: FakeHost) -> None:
    put("/etc/cdi", "", 0o644)(host)
    told = "/etc/cdi is not a directory only root can write: "
    assert ("root-directories", True) in [(name, message.startswith(told)) for name, message in bad(host)]


@pytest.mark.parametrize("text", ["{", "null", '{"version": 1}', '{"body": "", "body": ""}', '"text"'])
def test_a_damaged_join_record_is_told_by_its_path_and_what_to_do(host: FakeHost, text: str) -> None:
    host.put(RECORD, text)
    advice = "have the control plane sign for this host again (the playbook enroll), or move it away"
    assert ("signed-intent", f"{RECORD} is no join record: {advice}") in bad(host)


def test_a_token_of_roots_alone_is_no_finding(host: FakeHost) -> None:
    put(TOKEN_FILE, "abcdef.0123456789abcdef", 0o600)(host)
    assert bad(host) == []


def test_the_key_that_signs_reports_is_a_secret(host: FakeHost) -> None:
    put(CONFIG, 'signing_key = "/etc/bcd/node.key"\n' + PLANE.config(join=True))(host)
    put("/etc/bcd/node.key", "(a key)", 0o640)(host)
    ((check, message),) = bad(host)
    assert (check, "/etc/bcd/node.key has the mode 0640" in message, "(a key)" in message) == ("secrets", True, False)


def test_the_first_accepted_spec_binds_less_than_a_join_record(host: FakeHost) -> None:
    del host.files[RECORD]
    put(MEMORY, render(Memory("node-1", 4, bundle_key=PLANE.join.pin)), 0o600)(host)
    ((check, message),) = bad(host)
    assert (check, "only the first signed spec that came binds this host to the node node-1" in message) == (
        "node-binding",
        True,
    )


def test_a_join_record_that_says_that_nothing_is_signed(host: FakeHost) -> None:
    host.put(CONFIG, PLANE.config(roots=(), join=True))
    host.put(RECORD, json.dumps(PLANE.join_response("node-1", 1, [])))
    assert [check for check, _message in bad(host)] == ["node-binding", "signed-intent"]


def test_without_cryptography_nothing_that_is_pinned_can_be_verified(
    host: FakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "has_library", lambda: False)
    assert [check for check, _message in bad(host)] == ["cryptography"]


def test_the_lock_of_a_pass_that_goes_on_for_hours(host: FakeHost) -> None:
    host.put(f"{STATE}/lock", "host_section, process 812\n")
    host.put("/proc/812/stat", "812 (python3 (x)) S " + " ".join(["1"] * 18) + " 5000000 9 9\n")
    assert bad(host) == []  # a name that a pass left, and no lock
    host.put(
        "/proc/locks", "1: POSIX  ADVISORY  WRITE 812 fd:01:7 0 EOF\n2: FLOCK  ADVISORY  WRITE 812 fd:01:9 0 EOF\n"
    )
    ((check, message),) = bad(host)
    assert check == "lock"
    assert message.startswith("host_section, process 812 has held the host's lock, or at least run, for 10 hours")


def test_a_reboot_that_waits(host: FakeHost) -> None:
    Records(host).need_reboot("cpu", "cpu: reboot the node")
    host.calls.clear()
    host.programs["stat"] = lambda host, _argv: Answer(0, f"{host.time() - 5 * 86_400}\n")
    assert bad(host) == [
        ("reboot", "this host has waited 5 days for a reboot: cpu: reboot the node (the playbook reboot)")
    ]


# -- other accounts


def unprivileged(host: FakeHost) -> None:
    host.user = 1000
    host.unreadable |= {path for path in host.files if path.startswith((STATE, "/etc/bcd/"))}


def test_an_account_that_is_not_root_and_has_no_helper(host: FakeHost) -> None:
    del host.files[SOCKET]
    host.put("/sys/bus/pci/devices/0000:17:00.0/vendor", "0x10de\n")
    host.put("/sys/bus/pci/devices/0000:17:00.0/class", "0x030200\n")
    host.put("/sys/bus/pci/devices/0000:17:00.0/device", "0x2330\n")
    unprivileged(host)
    found = dict(bad(host))
    assert "signed-intent" in found["account"]
    assert "node-unprivileged" in found["gpu-binding"]
    assert {"config", "signed-intent", "node-binding", "records"}.isdisjoint(found)


def test_through_the_helper_it_is_roots_view(host: FakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    unprivileged(host)
    answer = {"changed": False, "state": "ok", "findings": [], "report": ["ok: 0 failures, 0 warnings, 0 ok"]}
    asked: list[tuple[str, dict[str, Any]]] = []

    def ask(op: str, **fields: Any) -> dict[str, Any]:
        asked.append((op, fields))
        return answer

    monkeypatch.setattr(through_helper, "asked_of_helper", ask)
    assert doctor.doctor_result() == answer
    assert asked == [("host.doctor", {})]


def test_a_helper_that_does_not_answer_is_a_finding(host: FakeHost) -> None:
    """Nothing listens at the socket of this host in memory."""
    unprivileged(host)
    found = findings(host)
    assert [one for one in found if one["check"] == "helper" and one["level"] == "failure"], found


def test_by_what_a_task_fails(host: FakeHost) -> None:
    result = doctor.doctor_result()
    assert [doctor.failure_of(result, fail_on) for fail_on in ("failure", "warning", "never")] == ["", "", ""]
    del host.files[RECORD]
    result = doctor.doctor_result()
    assert (result["state"], doctor.failure_of(result, "failure")) == ("warning", "")
    assert doctor.failure_of(result, "warning").startswith("node-binding: no join record binds this host")
    host.put(CONFIG, "")
    result = doctor.doctor_result()
    assert (result["state"], doctor.failure_of(result, "never")) == ("failure", "")
    assert "signed-intent: bcd helper applies host units unsigned" in doctor.failure_of(result, "failure")
    assert "no findings" in doctor.failure_of({"changed": False}, "failure")


# -- a worker, and GPUs


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize("ours", [True, False])
def test_a_worker_whose_root_allows_no_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, ours: bool) -> None:
    worker = member(cluster, ours=ours)
    worker.calls.clear()
    monkeypatch.setattr(machine, "Host", lambda: worker)
    worker.files.pop(CONFIG, None)
    found = {(one["check"], one["level"]) for one in findings(worker)}
    assert ("allowed-clusters", "failure" if ours else "ok") in found
    worker.put(CONFIG, f'[kubernetes]\nallowed_clusters = "{cluster.url}#sha256:{cluster.pin}"\n')
    found = {(one["check"], one["level"]) for one in findings(worker)}
    assert ("allowed-clusters", "ok") in found
    worker.put("/proc/swaps", "Filename Type Size Used Priority\n/swapfile file 1024 0 -2\n")
    assert "swap" in [check for check, _message in bad(worker)]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> GpuHost:
    """Two GPUs, one of them held, and nothing wrong but what a host that was never enrolled lacks."""
    host = hold_host.hold_host()
    hold_host.go(host, hold_host.assign("a1", hold_host.uuids(host)[0]))
    host.calls.clear()
    monkeypatch.setattr(machine, "Host", lambda: host)
    return host


def test_a_host_with_gpus_that_are_held(gpus: GpuHost) -> None:
    assert bad(gpus) == []


@pytest.mark.parametrize("kind", ["fields", "handle"])
def test_a_gpu_that_does_not_answer(gpus: GpuHost, kind: str) -> None:
    lost = gpus.machine.cards[1]
    lost.dead = kind
    gpus.sync()
    found = [message for check, message in bad(gpus) if check == "gpus"]
    assert len(found) == 1
    assert lost.uuid in found[0] or lost.pci in found[0], found


def test_holds_that_lost_their_files(gpus: GpuHost) -> None:
    del gpus.files[f"{STATE}/holds/a1.json"]
    del gpus.files["/run/bcd/allocations/a1.env"]
    put("/etc/cdi/bcd-a2.json", "{")(gpus)
    found = bad(gpus)
    assert [message.partition(":")[0] for check, message in found if check == "holds"] == [
        "/etc/cdi/bcd-a2.json is no JSON, and every GPU counts as held",
        "the hold a1 has no env file",
        "the hold a1 has no record",
    ]


def test_a_vendor_specification_that_is_gone_or_stale(gpus: GpuHost) -> None:
    gpus.programs["nvidia-ctk"] = lambda *_: Answer(0, "")
    del gpus.files["/dev/nvidia1"]
    gpus.machine.cards.pop()
    gpus.sync()
    gpus.files.pop("/dev/nvidia1", None)
    ((check, message),) = bad(gpus)
    assert (check, "/etc/cdi/nvidia.json names what this host lacks (/dev/nvidia1)" in message) == ("vendor-cdi", True)
    del gpus.files[hold_host.VENDOR]
    ((check, message),) = bad(gpus)
    assert (check, message.startswith("no CDI specification of nvidia.com/gpu is there")) == ("vendor-cdi", True)


def test_a_release_that_is_stuck(gpus: GpuHost) -> None:
    entry = {"devices": [{"id": hold_host.uuids(gpus)[1]}], "generation": 1, "since": 1, "asked": gpus.time() - 900}
    gpus.put(f"{STATE}/releasing.json", json.dumps({"version": 1, "releases": {"a9": entry}}))
    ((check, message),) = bad(gpus)
    assert (check, message.startswith("a9 was released 15 minutes ago")) == ("releases", True)
    gpus.put(f"{STATE}/releasing.json", "{")
    ((check, message),) = bad(gpus)
    assert (check, "every GPU counts as held" in message) == ("releases", True)


GARBLED = st.sampled_from(
    ["", "{", "[]", "null", "\udcff\x00", "x y z\n" * 3, '{"version": 1}', '{"version": 1, "units": {"cpu": [3]}}']
)
# What the doctor and the status read, root's records first.
READ = (
    *(f"{STATE}/{name}.json" for name in ("applied", "asked", "owed", "tried", "reboot", "agent", "releasing")),
    f"{STATE}/holds/a1.json", f"{STATE}/events/x.json", f"{STATE}/k8s-join.json", f"{STATE}/passthrough.json",
    f"{STATE}/lock", MEMORY, RECORD, CONFIG, "/etc/cdi/bcd-a1.json", "/etc/cdi/bcd-a2.json", hold_host.VENDOR,
    "/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/config.yaml", "/etc/passwd", "/usr/local/sbin/bcd",
    "/proc/uptime", "/proc/locks", "/proc/swaps", "/proc/driver/nvidia/version", "/run/bcd/allocations/a1.env",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(READ), GARBLED, min_size=1, max_size=6))
def test_no_garbled_file_keeps_them_from_telling_the_rest(garbled: dict[str, str]) -> None:
    host = hold_host.hold_host()
    hold_host.go(host, hold_host.assign("a1", hold_host.uuids(host)[0]))
    for path, text in garbled.items():
        host.put(path, text)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(machine, "Host", lambda: host)
        found, told = doctor.doctor_result(), status.status_result()
    assert not [one for one in found["findings"] if "a fault of the collection's own" in one["message"]]
    assert found["report"][-1].startswith(found["state"])
    assert told["report"][0].endswith(f": {told['state']}") or "waits for a reboot" in told["report"][0]


@pytest.mark.parametrize("fault", [OSError(errno.EIO, "Input/output error"), RuntimeError("a fault of ours")])
def test_a_look_that_fails_is_told_and_costs_the_others_nothing(host: FakeHost, fault: Exception) -> None:
    def broken(_host: FakeHost, _argv: tuple[str, ...]) -> Answer:
        raise fault

    host.programs["df"] = broken
    ((check, message),) = bad(host)
    assert check == "disk"
    assert message.startswith("this could not be looked at: ")
