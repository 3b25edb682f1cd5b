# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every check of the doctor, both ways: a host on which it finds nothing wrong, and each thing that it is for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import (
    SEEN_AS_ROOT,
    NotKnownYet,
    StepFailed,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import Unknown
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.doctor import (
    CHECKS,
    UNSEEN,
    findings,
    in_order,
    state_of,
    verdict,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.doctor_seen import (
    FAILURE,
    FIRST,
    OK,
    RECORD,
    WARNING,
    Agent,
    Cluster,
    Config,
    Disk,
    Files,
    Finding,
    Gpus,
    Helper,
    Holds,
    Iommu,
    Lock,
    Program,
    Records,
    Snapshot,
    Specs,
    Trust,
)
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.kube_seen import Joined
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.service_seen import Service
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.status_text import COLUMNS, of_doctor
from tests.tools.results import TOP

NOW = 1_800_000_000
DAY = 86_400
MIB = 1 << 20
PIN = "ab" * 32
SERVER = "https://10.0.0.1:6443"
CLUSTER = f"{SERVER}#sha256:{PIN}"
UP = Service("loaded", active="active", enabled="enabled")
IDLE = Service("loaded", active="inactive")
HELPER = Helper(True, UP, IDLE, True, 998, ("deploy",))
AGENT = Agent(True, UP, IDLE, age=300, up=DAY)
PINNED = Trust(roots=1, demand="command_root_sha256 in root's config.toml demands")
BOUND = PINNED._replace(node_id="node-1", binding=RECORD, generation=4)
MEMBER = Joined(SERVER, (PIN,), certificate="/var/lib/kubelet/pki/kubelet-client-current.pem", expires=NOW + 300 * DAY)
WORKER = Cluster(MEMBER, ours=True)


def allowed(text: Any) -> Config:
    return Config(True, {"": {}, "kubernetes": {"allowed_clusters": text}})


def of(check: str, **parts: Any) -> list[tuple[str, str]]:
    """What one check finds of a host with these parts: levels and messages."""
    seen = Snapshot(**{"time": NOW, **parts})
    return [(one.level, one.message) for one in findings(seen) if one.check == check]


def test_a_bare_host_has_nothing_to_be_found() -> None:
    assert findings(Snapshot(time=NOW)) == ()
    assert state_of(()) == OK


def test_an_enrolled_host_where_all_is_well() -> None:
    seen = Snapshot(
        time=NOW,
        config=allowed(CLUSTER),
        trust=BOUND,
        helper=HELPER,
        agent=AGENT,
        program=Program("0.1.0+0123456789ab", "0.1.0"),
        cluster=WORKER,
        iommu=Iommu(True, True, True),
        gpus=Gpus(8, "580.95.05"),
        specs=Specs(True, ("/etc/cdi/nvidia.yaml",)),
        disks=(Disk("/boot", 400 * MIB, 1024 * MIB),),
        clock="yes",
    )
    found = findings(seen)
    assert {one.level for one in found} == {OK}, found
    assert [one.check for one in found] == [
        "agent", "allowed-clusters", "clock", "config", "gpu-binding", "helper", "iommu", "kubelet-certificate",
        "node-binding", "signed-intent",
    ]  # fmt: skip


# -- signatures: the specification's words, and decision 7.22


UNSIGNED = "bcd helper applies host units unsigned unless the node itself presents a trust bundle"


@pytest.mark.parametrize(
    ("trust", "helper", "level", "message"),
    [
        (Trust(), HELPER, FAILURE, UNSIGNED),
        # The pinned join key's own record says that this control plane signs nothing.
        (Trust(join_key=True, node_id="node-1", binding=RECORD), HELPER, FAILURE, UNSIGNED),
        (PINNED, HELPER, OK, "command_root_sha256 in root's config.toml demands a signed spec"),
        (PINNED, Helper(), OK, "command_root_sha256 in root's config.toml demands a signed spec"),
        (Trust(fault="the join record: no"), HELPER, FAILURE, "the join record: no"),
    ],
)
def test_a_helper_that_applies_unsigned_is_a_failure(trust: Trust, helper: Helper, level: str, message: str) -> None:
    ((found, said),) = of("signed-intent", trust=trust, helper=helper)
    assert found == level
    assert said.startswith(message)


def test_without_a_helper_nothing_unsigned_can_come_from_an_account_that_is_not_root() -> None:
    assert of("signed-intent") == []


@pytest.mark.parametrize(
    ("trust", "level", "words"),
    [
        (BOUND, OK, "root's join record binds this host to the node node-1"),
        (
            BOUND._replace(binding=FIRST),
            WARNING,
            "only the first signed spec that came binds this host to the node node-1",
        ),
        (PINNED, WARNING, "no join record binds this host to a node"),
        (Trust(), FAILURE, "nothing is signed on this host"),
    ],
)
def test_what_binds_a_host_to_its_node(trust: Trust, level: str, words: str) -> None:
    ((found, said),) = of("node-binding", trust=trust, helper=HELPER)
    assert (found, words in said) == (level, True), said


def test_a_binding_is_told_only_where_one_counts() -> None:
    assert of("node-binding") == []
    assert of("node-binding", trust=PINNED._replace(library=False)) == []


def test_pins_want_cryptography() -> None:
    ((level, message),) = of("cryptography", trust=PINNED._replace(library=False))
    assert (level, "install python3-cryptography" in message) == (FAILURE, True)
    assert of("cryptography", trust=PINNED) == of("cryptography", trust=Trust(library=False)) == []


def test_a_configuration_that_is_not_roots_says_how_it_becomes_so() -> None:
    fault = "/etc/bcd/config.toml must be a regular file root owns that no one else can write"
    ((level, message),) = of("config", config=Config(True, fault=fault))
    assert (level, message.partition(fault)[1]) == (FAILURE, fault)
    assert message.endswith("(chown root:bcd /etc/bcd/config.toml; chmod 0640 /etc/bcd/config.toml)")
    ((_level, other),) = of("config", config=Config(True, fault="/etc/bcd/config.toml: line 3 is no TOML"))
    assert "chown" not in other


def test_a_helper_that_does_not_listen_is_not_said_to_answer() -> None:
    found = of("helper", helper=HELPER._replace(listens=False))
    assert [level for level, _message in found] == [FAILURE]


def test_a_configuration_that_is_not_taken_is_a_failure_and_told_once() -> None:
    fault = "/etc/bcd/config.toml must be a regular file root owns that no one else can write"
    seen = Snapshot(
        time=NOW,
        config=Config(True, fault=fault),
        trust=Trust(fault=fault),
        helper=HELPER,
        program=Program("0.1.0"),
        cluster=WORKER,
    )
    assert [(one.check, one.message.partition(": ")[0]) for one in findings(seen) if one.level == FAILURE] == [
        ("config", fault)
    ]


@pytest.mark.parametrize(
    ("table", "key", "meant"),
    [
        ("", "command_root_sha265", "command_root_sha256"),
        ("", "join_signing_pin", "join_signing_key_pin"),
        ("kubernetes", "allowed_cluster", "[kubernetes] allowed_clusters"),
        ("", "allowed_clusters", "[kubernetes] allowed_clusters"),
        ("host", "unit", "[host] units"),
    ],
)
def test_a_key_that_is_nearly_one_of_ours(table: str, key: str, meant: str) -> None:
    ((level, message), _ok) = of("config", config=Config(True, {"": {}, table: {key: "x"}}))
    assert (level, message.endswith(f"which nothing reads: is {meant} meant?")) == (WARNING, True), message


def test_keys_of_ours_and_of_other_programs_are_let_be() -> None:
    tables: dict[str, dict[str, Any]] = {
        "": {"command_root_sha256": "", "join_signing_key_pin": "", "signing_key": "/k", "data_dir": "/var/lib/bcd"},
        "host": {"units": True},
        "kubernetes": {"allowed_clusters": ""},
        "helper": {"socket": "/run/bcd/helper.sock", "command_root_sha256": ""},
    }
    assert of("config", config=Config(True, tables)) == [
        (OK, "/etc/bcd/config.toml is root's, and says what is understood")
    ]


# -- helper, agent, program


@pytest.mark.parametrize(
    ("changed", "level", "words"),
    [
        ({"socket": UP._replace(active="inactive")}, FAILURE, "bcd-helper.socket is inactive: systemctl enable --now"),
        ({"socket": UP._replace(active="failed")}, FAILURE, "bcd-helper.socket has failed"),
        ({"socket": UP._replace(enabled="disabled")}, FAILURE, "bcd-helper.socket is disabled at the next boot"),
        ({"service": IDLE._replace(active="failed")}, FAILURE, "see journalctl -u bcd-helper.service"),
        ({"listens": False}, FAILURE, "/run/bcd/helper.sock is not there"),
        ({"group": None, "members": ()}, FAILURE, "there is no group bcd"),
        ({"members": ()}, WARNING, "nobody is in the group bcd"),
        ({"systemd": False}, FAILURE, "systemd does not run here"),
    ],
)
def test_a_helper_that_nobody_could_use(changed: dict[str, Any], level: str, words: str) -> None:
    found = of("helper", helper=HELPER._replace(**changed))
    assert [one for one in found if one[0] == level and words in one[1]], found


def test_a_host_without_a_helper_is_not_asked_for_one() -> None:
    assert of("helper") == []
    assert of("helper", helper=HELPER) == [(OK, "bcd helper answers root and the group bcd (deploy)")]


@pytest.mark.parametrize(
    ("changed", "level", "words"),
    [
        ({"timer": UP._replace(active="inactive")}, FAILURE, "bcd-agent.timer is inactive"),
        ({"timer": UP._replace(enabled="disabled")}, FAILURE, "bcd-agent.timer is disabled at the next boot"),
        ({"service": IDLE._replace(active="failed")}, FAILURE, "bcd-agent.service has failed"),
        ({"age": 2 * 3600}, WARNING, "the agent made its last pass 120 minutes ago"),
        ({"age": None}, WARNING, "the agent has made no pass in this boot"),
        (
            {"says": "cpu: reboot the node"},
            WARNING,
            "left something undone: cpu: reboot the node",
        ),
    ],
)
def test_an_agent_that_keeps_nothing(changed: dict[str, Any], level: str, words: str) -> None:
    found = of("agent", agent=AGENT._replace(**changed))
    assert [one for one in found if one[0] == level and words in one[1]], found


@pytest.mark.parametrize(
    "agent",
    [
        AGENT,
        AGENT._replace(age=None, up=60),  # soon after the boot
        *(AGENT._replace(age=None, service=IDLE._replace(active=state)) for state in ("activating", "active")),
    ],
)
def test_an_agent_that_runs_or_is_about_to(agent: Agent) -> None:
    assert of("agent", agent=agent) == [(OK, "bcd agent keeps what was applied")]
    assert of("agent") == []


def test_one_version_everywhere() -> None:
    ((level, message),) = of("program", program=Program("0.1.0", "0.2.0"))
    assert (level, "has version 0.1.0, and this is 0.2.0" in message) == (WARNING, True)
    ((level, message),) = of("program", helper=HELPER, program=Program("", "0.2.0"))
    assert (level, message.startswith("/usr/local/sbin/bcd is not there")) == (FAILURE, True)
    assert of("program", program=Program("0.2.0+0123456789ab", "0.2.0")) == of("program") == []


def test_gpus_that_a_pass_without_root_cannot_hold() -> None:
    gpus = Gpus(2, "580.95.05")
    ((level, message),) = of("gpu-binding", root=False, gpus=gpus)
    assert (level, "node-unprivileged" in message, "has 2 GPUs" in message) == (WARNING, True, True)
    beside = of("gpu-binding", root=False, gpus=gpus, helper=Helper(listens=True))
    assert [level for level, _message in (*beside, *of("gpu-binding", gpus=gpus))] == [OK, OK]
    assert of("gpu-binding", root=False) == []


# -- Kubernetes


def test_a_joined_node_without_allowed_clusters_is_a_failure() -> None:
    ((level, message),) = of("allowed-clusters", cluster=WORKER)
    assert level == FAILURE
    assert message.startswith("joining a Kubernetes cluster needs [kubernetes] allowed_clusters in bcd's config")
    assert CLUSTER in message


@pytest.mark.parametrize(
    ("text", "cluster", "level"),
    [
        (CLUSTER, WORKER, OK),
        (f"https://other:6443#sha256:{PIN}", WORKER, WARNING),
        (f"{SERVER}#sha256:{'cd' * 32}", WORKER, WARNING),
        ("", Cluster(MEMBER), OK),  # joined by others
        ("https://10.0.0.1:6443", Cluster(), FAILURE),  # malformed, whoever has joined
        (7, Cluster(), FAILURE),
    ],
)
def test_the_cluster_is_one_that_root_allows(text: Any, cluster: Cluster, level: str) -> None:
    ((found, message),) = of("allowed-clusters", cluster=cluster, config=allowed(text))
    assert found == level, message


def test_clusters_are_nothing_to_a_machine_that_is_in_none() -> None:
    assert of("allowed-clusters", config=allowed(CLUSTER)) == of("allowed-clusters") == []


@pytest.mark.parametrize(
    ("left", "level", "words"),
    [
        (300 * DAY, OK, "is good for 300 days"),
        (6 * DAY, WARNING, "ends in 6 days and was not renewed"),
        (-2 * DAY, FAILURE, "ended 2 days ago"),
        (-NOW, WARNING, "has no certificate to read"),
    ],
)
def test_the_kubelets_certificate(left: int, level: str, words: str) -> None:
    cluster = Cluster(MEMBER._replace(expires=NOW + left))
    ((found, message),) = of("kubelet-certificate", cluster=cluster)
    assert (found, words in message) == (level, True), message


def test_swap_beside_a_kubelet_that_minds_it() -> None:
    swapping = WORKER._replace(swap=("/swapfile",))
    ((level, message),) = of("swap", cluster=swapping)
    assert (level, message.startswith("swap is on (/swapfile)")) == (WARNING, True)
    assert of("swap", cluster=swapping._replace(swap_allowed=True)) == of("swap", cluster=WORKER) == []
    assert of("swap", cluster=swapping._replace(joined=None)) == []


# -- root's records, and the host


def test_records_debts_and_reboots() -> None:
    assert of("records", records=Records(faults=("/x is damaged",))) == [(FAILURE, "/x is damaged")]
    ((level, message),) = of("debts", records=Records(owed={"cpu": ("update-grub",)}))
    assert (level, message.startswith("cpu: a pass ended before what had to follow (update-grub)")) == (WARNING, True)
    waiting = {"cpu": "cpu: reboot the node"}
    for age, level, words in (
        (None, OK, "this host waits for a reboot: cpu: reboot the node"),
        (2 * DAY, OK, "this host waits for a reboot"),
        (9 * DAY, WARNING, "has waited 9 days for a reboot: cpu: reboot the node"),
    ):
        ((found, message),) = of("reboot", records=Records(reboot=waiting, reboot_age=age))
        assert (found, words in message) == (level, True), message
    assert of("records") == of("debts") == of("reboot") == []


def test_directories_and_secrets() -> None:
    ((level, message),) = of("root-directories", files=Files(("/etc/sysctl.d",)))
    specified = "/etc/sysctl.d is not a directory only root can write: bcd will not write as root under it"
    assert (level, message.startswith(specified)) == (FAILURE, True)
    ((level, message),) = of("secrets", files=Files(readable=(("/etc/bcd/node.key", 0o644),)))
    assert (level, "/etc/bcd/node.key has the mode 0644" in message) == (FAILURE, True)
    assert of("root-directories") == of("secrets") == []


@pytest.mark.parametrize(
    ("disk", "levels"),
    [
        (Disk("/boot", 8 * MIB, 1024 * MIB), [FAILURE]),
        (Disk("/boot", 90 * MIB, 1024 * MIB), [WARNING]),
        (Disk("/boot", 150 * MIB, 1024 * MIB), []),  # more than a tenth
        (Disk("/var/lib", 900 * MIB, 50_000 * MIB), [WARNING]),
        (Disk("/var/lib", 2000 * MIB, 50_000 * MIB), []),
    ],
)
def test_room_on_disks(disk: Disk, levels: list[str]) -> None:
    assert [level for level, _message in of("disk", disks=(disk,))] == levels


def test_lock_clock_and_boot_services() -> None:
    ((level, message),) = of("lock", lock=Lock("host_section, process 812", 5 * 3600))
    assert (level, message.startswith("host_section, process 812 has held the host's lock")) == (WARNING, True)
    assert of("lock", lock=Lock("host_section, process 812", 60)) == of("lock") == []
    assert [level for level, _message in of("clock", clock="no") + of("clock", clock="yes")] == [WARNING, OK]
    assert of("clock") == []
    ((level, message),) = of("boot-services", failed=("bcd-mig.service",))
    assert (level, "bcd-mig.service has failed" in message) == (WARNING, True)


# -- GPUs


def test_an_active_iommu_without_vfio() -> None:
    """As the specification has it: bcd doctor warns when a host with an active IOMMU has no vfio-pci driver loaded."""
    ((level, message),) = of("iommu", iommu=Iommu(True))
    assert (level, "no vfio-pci driver is loaded" in message) == (WARNING, True)
    ((level, message),) = of("iommu", iommu=Iommu(False, asked=True, vfio=True))
    assert (level, "VT-d or AMD-Vi" in message) == (WARNING, True)
    assert of("iommu", iommu=Iommu(True, vfio=True)) == [(OK, "an IOMMU is on, and the vfio-pci driver is loaded")]
    assert of("iommu") == []


def test_drivers_and_specifications_of_gpus() -> None:
    assert of("gpus", gpus=Gpus(2, "580", ("GPU-1: it is lost",))) == [(WARNING, "GPU-1: it is lost")]
    unsigned = Gpus(2, "", (), "Secure Boot is on", "/lib/modules/6.1/nvidia.ko")
    ((level, message),) = of("secure-boot", gpus=unsigned)
    assert (level, message.startswith("Secure Boot is on, and /lib/modules/6.1/nvidia.ko has no signature")) == (
        WARNING,
        True,
    )
    assert of("secure-boot", gpus=unsigned._replace(signer="Canonical")) == []
    assert of("secure-boot", gpus=unsigned._replace(only_signed="")) == []


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        (Specs(True), "no CDI specification of nvidia.com/gpu is there"),
        (Specs(True, (), (("/etc/cdi/nvidia.yaml", "it has no kind"),)), "/etc/cdi/nvidia.yaml is no sound CDI"),
        (Specs(True, ("/a",), broken=(("/etc/cdi/x.json", "it is empty"),)), "/etc/cdi/x.json is no sound CDI"),
        (Specs(True, ("/a",), gone=(("/a", ("/dev/nvidia7",)),)), "/a names what this host lacks (/dev/nvidia7)"),
    ],
)
def test_specifications_that_give_no_gpu(specs: Specs, words: str) -> None:
    ((level, message),) = of("vendor-cdi", specs=specs, gpus=Gpus(2, "580.95.05"))
    assert (level, message.startswith(words)) == (WARNING, True), message
    assert of("vendor-cdi", specs=Specs(True)) == []  # without a driver nothing is to be described


def test_holds_releases_and_events() -> None:
    it = Holds(("a1 cannot be made out",), (("a2", "record"),), ("/etc/cdi/bcd-a3.json",))
    assert [(level, message.partition(":")[0]) for level, message in of("holds", holds=it)] == [
        (FAILURE, "a1 cannot be made out"),
        (WARNING, "/etc/cdi/bcd-a3.json is not as root keeps it (owner, mode, or a link in its place)"),
        (WARNING, "the hold a2 has no record"),
    ]
    stuck = Holds(releases=(("a1", NOW - 3600), ("a2", NOW - 60)), unread="releasing.json cannot be made out")
    assert [(level, message.partition(" ")[0]) for level, message in of("releases", holds=stuck)] == [
        (FAILURE, "releasing.json"),
        (WARNING, "a1"),
    ]
    assert [level for level, _message in of("events", holds=Holds(events=1001))] == [WARNING]
    assert of("holds") == of("releases") == of("events") == of("events", holds=Holds(events=1000)) == []


# -- what is not seen, and what follows


def test_what_this_account_does_not_see_is_named_once_and_costs_no_other_check() -> None:
    hidden: Any = Unknown(NotKnownYet(SEEN_AS_ROOT))
    found = findings(Snapshot(root=False, time=NOW, records=hidden, holds=hidden, clock="no"))
    assert [(one.check, one.level) for one in found] == [("account", WARNING), ("clock", WARNING)]
    assert found[0].message == (
        "this account is not root, and did not see what debts, events, holds, reboot, records, releases look at: it is "
        "seen as root: set become: true, or enroll the host with its helper"
    )


def test_a_look_that_failed_is_a_warning_of_the_checks_that_need_it() -> None:
    broken: Any = Unknown(StepFailed("cannot read /proc/locks: Input/output error"))
    assert of("lock", lock=broken) == [
        (WARNING, "this could not be looked at: cannot read /proc/locks: Input/output error")
    ]


def test_the_worst_comes_first_and_decides() -> None:
    found = [Finding("b", OK, "x"), Finding("c", FAILURE, "y"), Finding("a", WARNING, "z"), Finding("a", WARNING, "z")]
    ordered = in_order(found)
    assert [one.check for one in ordered] == ["c", "a", "b"]
    assert [state_of(ordered[at:]) for at in range(4)] == [FAILURE, WARNING, OK, OK]
    assert [verdict(ordered, fail_on) for fail_on in ("failure", "warning", "never")] == ["c: y", "c: y; a: z", ""]


def test_each_check_is_tried_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in CHECKS if f'of("{name}"' not in text] == []


def test_each_check_is_documented() -> None:
    text = (TOP / "plugins" / "modules" / "host_doctor.py").read_text(encoding="utf-8")
    assert [name for name in (*CHECKS, UNSEEN) if f"V({name})" not in text] == []


def test_the_report_fits_a_screen_and_steers_nothing() -> None:
    said = "one \x1b[31mword\x1b[0m " + "and another " * 30 + "\u202eGPU-5f1c2a90-0000-4000-8000-000000000001"
    lines = of_doctor({"state": "warning", "findings": [Finding("vendor-cdi", WARNING, said)._asdict()]})
    assert max(map(len, lines)) <= COLUMNS
    assert lines[0].startswith("warning  vendor-cdi  one \\x1b[31mword")
    assert all(line.startswith(" " * 21) for line in lines[1:-1])
    assert "\\u202eGPU-5f1c2a90-0000-4000-8000-000000000001" in " ".join(lines)
    assert lines[-1] == "warning: 0 failures, 1 warning, 0 ok"
