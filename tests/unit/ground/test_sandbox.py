# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is taken from root's services, and that the role's README accounts for each setting, taken or left open.

The lab shows that drivers are installed and hosts converge with it; what systemd makes of it is told there.
"""

from __future__ import annotations

import re

import jinja2
import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import installed
from tests.tools.results import TOP

ROLE = TOP / "roles" / "bcd_helper"
SANDBOX = (ROLE / "files" / "sandbox.conf").read_text(encoding="utf-8")
README = (ROLE / "README.md").read_text(encoding="utf-8")
Settings = list[tuple[str, str]]

TAKEN = {
    *("SYS_BOOT", "SYS_TIME", "WAKE_ALARM", "BLOCK_SUSPEND", "SYS_PACCT", "LEASE", "AUDIT_CONTROL", "AUDIT_READ"),
    *("MAC_ADMIN", "MAC_OVERRIDE", "SYS_TTY_CONFIG", "SYS_RAWIO", "SYS_CHROOT", "SYSLOG", "IPC_LOCK", "IPC_OWNER"),
    *("NET_RAW", "NET_BROADCAST", "NET_BIND_SERVICE", "BPF", "PERFMON", "CHECKPOINT_RESTORE"),
}
# Drivers, devices, packages and their users, cgroups, swap, sysctls of networks, and a look at all processes.
NEEDED = {
    *("SYS_ADMIN", "SYS_MODULE", "MKNOD", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP", "SETUID", "SETGID"),
    *("KILL", "NET_ADMIN", "SYS_PTRACE", "SYS_RESOURCE", "SYS_NICE", "AUDIT_WRITE", "LINUX_IMMUTABLE"),
}
# Each would be a private mount namespace, or close what a pass has to reach.
NOT_SET = {
    *("PrivateTmp", "ProtectHome", "ProtectSystem", "PrivateMounts", "ProtectKernelLogs", "ProtectProc"),
    *("ProtectKernelTunables", "ProtectKernelModules", "ProtectControlGroups", "PrivateDevices", "ProtectClock"),
    *("DevicePolicy", "ProtectHostname", "PrivateIPC", "PrivateNetwork", "PrivateUsers", "ProcSubset"),
    *("MemoryDenyWriteExecute", "RestrictSUIDSGID", "NoNewPrivileges"),
}


def settings(text: str, section: str = "Service") -> Settings:
    """The settings of a section of a unit file, in order."""
    found: Settings = []
    here = ""
    for line in text.splitlines():
        if line.startswith("["):
            here = line.strip("[]")
        elif here == section and line and not line.startswith("#"):
            key, equals, value = line.partition("=")
            assert equals, line
            found.append((key, value))
    return found


def rendered(role: str, name: str) -> str:
    """A unit file of a role's template, as Ansible writes it."""

    def lookup(_kind: str, path: str) -> str:
        return SANDBOX.rstrip("\n")

    text = (TOP / "roles" / role / "templates" / f"{name}.j2").read_text(encoding="utf-8")
    return jinja2.Environment().from_string(text).render(lookup=lookup, role_path="")


SERVICES = [("bcd_helper", "bcd-helper.service"), ("bcd_agent", "bcd-agent.service")]


@pytest.fixture(params=SERVICES, ids=lambda service: service[1])
def service(request: pytest.FixtureRequest) -> Settings:
    return settings(rendered(*request.param))


def values(service: Settings, key: str) -> list[str]:
    return [value for name, value in service if name == key]


def test_the_capabilities_that_no_pass_needs_are_taken(service: Settings) -> None:
    lines = values(service, "CapabilityBoundingSet")
    assert all(line.startswith("~") for line in lines)  # of a list without it, a second one would add to the first
    names = " ".join(line.lstrip("~") for line in lines).split()
    assert {name.removeprefix("CAP_") for name in names} == TAKEN
    assert len(names) == len(TAKEN)
    assert not TAKEN & NEEDED


def test_calls_into_the_kernel_that_no_pass_needs_are_refused_and_kill_no_program(service: Settings) -> None:
    lines = values(service, "SystemCallFilter")
    assert all(line.startswith("~") for line in lines)
    words = set(" ".join(line.lstrip("~") for line in lines).split())
    assert words >= {"@clock", "@cpu-emulation", "@debug", "@obsolete", "@raw-io", "@reboot"}
    # Modules are loaded, swap is turned off, packages change owners and mount.
    assert not words & {"@module", "@mount", "@swap", "@privileged", "@chown", "@resources", "@setuid", "@file-system"}
    assert values(service, "SystemCallErrorNumber") == ["EPERM"]
    assert values(service, "SystemCallArchitectures") == ["native"]


def test_the_rest_of_what_is_taken(service: Settings) -> None:
    assert (
        dict(service).items()
        >= {
            "RestrictAddressFamilies": "AF_UNIX AF_INET AF_INET6 AF_NETLINK",
            "RestrictNamespaces": "mnt net",
            "RestrictRealtime": "yes",
            "LockPersonality": "yes",
            "KeyringMode": "private",
            "LimitCORE": "0",
            "OOMPolicy": "continue",
            "KillMode": "mixed",
            "UMask": "0022",
        }.items()
    )
    assert 512 <= int(dict(service)["TasksMax"]) <= 8192
    minutes = re.fullmatch(r"(\d+)min", dict(service)["TimeoutStopSec"])
    assert minutes, "a stop waits longer than a program of a pass may take"
    assert int(minutes[1]) > 20


def test_what_would_break_a_pass_is_not_set(service: Settings) -> None:
    assert {key for key, _value in service} & NOT_SET == set()


def test_nothing_of_the_manager_s_own_replaces_root(service: Settings) -> None:
    """Another account, or a writable directory of the service's own, would be somebody else's."""
    keys = {key for key, _value in service}
    assert not keys & {"User", "Group", "DynamicUser", "SupplementaryGroups", "AmbientCapabilities", "Environment"}
    assert not {key for key in keys if key.endswith("Directory") or key.startswith(("BindPaths", "Root"))}


def test_the_readme_accounts_for_all_of_it() -> None:
    taken, left = README.split("| left open | because |")
    for name in TAKEN:
        assert f"`CAP_{name}`" in taken, name
    for key, value in settings("[Service]\n" + SANDBOX):
        words = re.findall(r"[@a-z][a-z-]+", value) if key == "SystemCallFilter" else [key]
        quiet = ("CapabilityBoundingSet", "SystemCallErrorNumber", "OOMPolicy")
        missing = [word for word in words if f"`{word}`" not in taken and word not in quiet]
        assert set(missing) <= {"acct", "sethostname", "setdomainname", "vhangup"}, missing
    assert [key for key in sorted(NOT_SET) if f"`{key}`" not in left] == []


def test_the_socket_is_root_s_and_the_group_s() -> None:
    socket = dict(settings((ROLE / "files" / "bcd-helper.socket").read_text(encoding="utf-8"), "Socket"))
    assert socket["ListenStream"] == "/run/bcd/helper.sock"
    assert (socket["SocketUser"], socket["SocketGroup"], socket["SocketMode"]) == ("root", "bcd", "0660")
    assert socket["DirectoryMode"] == "0755"
    assert socket["Accept"] == "no"
    helper = rendered("bcd_helper", "bcd-helper.service")
    assert dict(settings(helper))["ExecStart"] == "/usr/local/sbin/bcd helper"
    assert dict(settings(helper, "Unit"))["Requires"] == "bcd-helper.socket"


def test_the_agent_comes_at_each_boot_and_every_ten_minutes_and_not_with_all_others_at_once() -> None:
    timer = (ROLE.parent / "bcd_agent" / "files" / installed.AGENT_TIMER).read_text(encoding="utf-8")
    when = dict(settings(timer, "Timer"))
    assert (when["OnBootSec"], when["OnUnitInactiveSec"]) == ("1min", "10min")
    assert when["RandomizedDelaySec"] == "1min"
    assert "Unit" not in when  # the service of its own name
    assert dict(settings(timer, "Install")) == {"WantedBy": "timers.target"}


def test_a_pass_that_something_may_come_of_is_followed_by_another_and_no_failure() -> None:
    """2 is the status of progressing: systemd starts the agent again, and has no failed unit."""
    agent = dict(settings(rendered("bcd_agent", installed.AGENT_SERVICE)))
    assert (agent["SuccessExitStatus"], agent["RestartForceExitStatus"], agent["RestartSec"]) == ("2", "2", "30")
    assert "Restart" not in agent  # a failure has the next ten minutes


def test_the_helper_is_started_by_who_asks_however_often() -> None:
    helper = rendered("bcd_helper", installed.HELPER_SERVICE)
    assert dict(settings(helper, "Unit"))["StartLimitIntervalSec"] == "0"
    assert settings(helper, "Install") == []
    socket = (ROLE / "files" / installed.HELPER_SOCKET).read_text(encoding="utf-8")
    assert dict(settings(socket, "Install")) == {"WantedBy": "sockets.target"}
    # A hundred clients at once wait there, and none is told that nobody listens.
    assert int(dict(settings(socket, "Socket"))["Backlog"]) >= 100


def test_the_program_knows_what_the_roles_lay_down_by_the_same_names() -> None:
    """The sandbox, the socket's path and the names of units stand in roles and in code."""
    socket = dict(settings((ROLE / "files" / "bcd-helper.socket").read_text(encoding="utf-8"), "Socket"))
    assert (socket["ListenStream"], socket["SocketGroup"]) == (installed.SOCKET, installed.GROUP)
    for role, unit, word in (
        ("bcd_helper", installed.HELPER_SERVICE, "helper"),
        ("bcd_agent", installed.AGENT_SERVICE, "agent"),
    ):
        assert dict(settings(rendered(role, unit)))["ExecStart"] == f"{installed.SCRIPT} {word}"
    assert (ROLE / "files" / installed.HELPER_SOCKET).is_file()
    assert (ROLE.parent / "bcd_agent" / "files" / installed.AGENT_TIMER).is_file()
