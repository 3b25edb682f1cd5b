# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""container-toolkit: the toolkit, Docker, CRI-O, Podman, and the toolkit's own files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.container_toolkit import check
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.container_toolkit_config import steered
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.container_toolkit_generate import settings_of
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.container_toolkit import UNIT
from tests.gpu.model import Machine
from tests.unit.container_host import (
    DAEMON,
    ENVIRONMENT,
    PACKAGED,
    REFRESH_ENV,
    RUNTIME,
    SPEC,
    ContainerHost,
    apt_get,
)
from tests.unit.container_host import PACKAGE as TOOLKIT
from tests.unit.fake_host import FakeHost, Killed
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet

HEADER = "# Managed by bettercompute.bcd: local edits are replaced.\n"
CRIO = "/etc/crio/crio.conf.d/99-zz-bcd-nvidia.conf"
EVERY = {"containerd": "1.7.24", "docker": "28.5.2", "crio": "1.30.0", "podman": "5.4.2"}
ENVVAR = "accept-nvidia-visible-devices-envvar-when-unprivileged"
MOUNTS = "accept-nvidia-visible-devices-as-volume-mounts"


def host_with(files: dict[str, str] | None = None, toolkit: bool = True, **runtimes: str) -> ContainerHost:
    return ContainerHost(Machine.from_products(["H100-80GB"]), runtimes, files, toolkit)


def everything(toolkit: bool = False) -> ContainerHost:
    return host_with({DAEMON: '{"log-driver": "journald"}'}, toolkit=toolkit, **EVERY)


def configuration(host: ContainerHost) -> dict[str, str]:
    """What lies in /etc, the time and our records aside."""
    return {path: file.text for path, file in host.files.items() if path.startswith("/etc/")}


# -- the whole of it


def test_a_bare_host_gets_everything_in_one_pass() -> None:
    host = everything()
    done = go(UNIT, host, {})
    assert (done.state, done.failure, done.pending) == ("converged", None, ())
    assert [line for line in lines(done) if line.startswith("install")] == ["install nvidia-container-toolkit"]
    assert sorted(host.restarts) == ["containerd", "crio", "docker"]
    assert lines(done).index(f"describe 1 device of this host in {SPEC}") < min(
        at for at, line in enumerate(lines(done)) if line.startswith("restart")
    )  # containers that start with their daemon need it
    assert [step.disruption for step in done.steps if "restart" in step.action] == ["service"] * 3
    assert {step.disruption for step in done.steps if "restart" not in step.action} == {"none"}
    second_pass_is_quiet(UNIT, host, {})
    assert sorted(host.restarts) == ["containerd", "crio", "docker"]


def test_check_mode_is_truthful() -> None:
    check_is_truthful(UNIT, lambda: everything(toolkit=True), {})
    check_is_truthful(UNIT, everything, {})


def test_check_mode_on_a_bare_host_says_what_it_cannot_know() -> None:
    planned = go(UNIT, everything(), {}, check=True)
    after = "known after nvidia-container-toolkit is installed"
    assert [step.action for step in planned.steps if step.later] == [
        f"{RUNTIME}: {after}",
        f"{REFRESH_ENV}: {after}",
        f"{SPEC}: {after}",
    ]
    assert planned.failure is None


@pytest.mark.exhaustive
def test_a_kill_anywhere_loses_nothing() -> None:
    def shown(host: FakeHost) -> object:
        assert isinstance(host, ContainerHost)
        return configuration(host), set(host.restarts)

    assert a_kill_loses_nothing(UNIT, everything, {}, shown) >= 12


def test_a_restart_that_was_not_made_is_held_back_and_owed() -> None:
    host = everything(toolkit=True)
    held = go(UNIT, host, {}, max_disruption="none")
    assert [wait.reason for wait in held.pending] == ["HeldBack"] * 3
    assert host.restarts == []
    assert "service" in held.pending[0].message
    again = go(UNIT, host, {}, max_disruption="none")
    assert (again.changed, host.restarts) == (False, [])
    assert go(UNIT, host, {}, max_disruption="service").state == "converged"
    assert sorted(host.restarts) == ["containerd", "crio", "docker"]


def test_what_does_not_run_is_not_started() -> None:
    host = everything(toolkit=True)
    host.running = {"docker"}
    assert go(UNIT, host, {}).state == "converged"
    assert host.restarts == ["docker"]
    second_pass_is_quiet(UNIT, host, {})


def test_without_a_runtime_only_a_note() -> None:
    done = go(UNIT, host_with(), {})
    assert done.state == "converged"
    assert done.notes == ("no container runtime is installed: one that comes later is configured by the next pass",)


def test_a_toolkit_that_no_repository_offers_is_a_failed_step() -> None:
    host = everything()
    host.offered = ""
    failed = go(UNIT, host, {})
    assert failed.failure is not None
    assert failed.failure.retryable is True
    assert "no repository of this host offers nvidia-container-toolkit" in failed.failure.message
    assert host.restarts == []


class Dpkg:
    """apt that dies while it installs; `states` of the packages: U unpacked, F half configured, i installed."""

    def __init__(self, host: ContainerHost, left: dict[str, str]) -> None:
        self.left = left
        self.states: dict[str, str] = {}
        self.installs = 0
        host.programs.update({"apt-get": self.apt, "dpkg-query": self.query, "dpkg": self.configure})

    def apt(self, host: FakeHost, argv: tuple[str, ...]) -> Answer:
        if "install" not in argv or "-s" in argv:
            return apt_get(host, argv)
        self.installs += 1
        apt_get(host, argv)
        if self.installs == 1:
            self.states = dict(self.left)
            raise Killed("apt-get")
        self.states[TOOLKIT] = "i"
        return Answer(0, "")

    def query(self, _host: FakeHost, argv: tuple[str, ...]) -> Answer:
        shown = [name for name in self.states if "--show" in argv or name in argv]
        return Answer(0 if shown else 1, "".join(f"i{self.states[name]} |{name}|1.18.1-1\n" for name in shown))

    def configure(self, _host: FakeHost, argv: tuple[str, ...]) -> Answer:
        assert argv[-2:] == ("--configure", "-a")
        self.states = dict.fromkeys(self.states, "i")
        return Answer(0, "")


HALF = {f"{TOOLKIT}-base": "i", TOOLKIT: "F"}
FINISH = f"finish what an interrupted dpkg left: configure {TOOLKIT}"


def killed_while_apt_ran(left: dict[str, str]) -> tuple[ContainerHost, Dpkg]:
    host = host_with(toolkit=False, docker="28.5.2")
    dpkg = Dpkg(host, left)
    with pytest.raises(Killed):
        go(UNIT, host, {})
    assert "nvidia-ctk" in host.programs
    return host, dpkg


@pytest.mark.parametrize(
    ("left", "finish"),
    [
        (HALF, FINISH),
        ({f"{TOOLKIT}-base": "i", TOOLKIT: "U"}, FINISH),
        ({f"{TOOLKIT}-base": "U"}, f"{FINISH}-base"),  # which brings nvidia-ctk; the other was not unpacked yet
    ],
)
def test_an_installation_that_was_killed_half_way_is_finished(left: dict[str, str], finish: str) -> None:
    check_is_truthful(UNIT, lambda: killed_while_apt_ran(left)[0], {})
    host, dpkg = killed_while_apt_ran(left)
    done = go(UNIT, host, {})
    assert (done.state, dpkg.states) == ("converged", {f"{TOOLKIT}-base": "i", TOOLKIT: "i"})
    assert lines(done)[0] == finish
    assert ("install nvidia-container-toolkit" in lines(done)) is (TOOLKIT not in left)
    host.asked.clear()
    second_pass_is_quiet(UNIT, host, {})
    assert not [argv for argv in host.asked if argv[0] == "dpkg-query"]  # a converged pass asks no package manager


def test_an_installation_that_was_killed_before_it_began_is_made() -> None:
    host = host_with(toolkit=False)
    dpkg = Dpkg(host, {})
    with pytest.raises(Killed):
        go(UNIT, host, {})
    assert (go(UNIT, host, {}).state, dpkg.states) == ("converged", {TOOLKIT: "i"})


def test_removal_finishes_what_a_killed_pass_left_half_installed() -> None:
    host, dpkg = killed_while_apt_ran(HALF)
    assert lines(go(UNIT, host, None)) == [FINISH]
    assert dpkg.states[TOOLKIT] == "i"
    assert go(UNIT, host, None).changed is False


def test_a_package_without_its_program_is_no_toolkit() -> None:
    host = host_with(toolkit=False)
    host.programs["dpkg-query"] = lambda _host, _argv: Answer(0, f"ii |{TOOLKIT}|1.18.1-1\n")
    failed = go(UNIT, host, {})
    assert failed.failure is not None
    assert "is installed, and /usr/bin/nvidia-ctk is not there: install it again" in failed.failure.message


def test_removal_leaves_everything_and_says_so() -> None:
    host = everything(toolkit=True)
    go(UNIT, host, {})
    before = configuration(host)
    gone = go(UNIT, host, None)
    assert (gone.state, gone.changed, configuration(host)) == ("converged", False, before)
    assert "nvidia-container-toolkit stays installed" in gone.notes[0]


def test_removal_makes_a_restart_that_is_owed() -> None:
    host = everything(toolkit=True)
    go(UNIT, host, {"runtimes": ["docker"]}, max_disruption="none")
    go(UNIT, host, None)
    assert host.restarts == ["docker"]


# -- settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"runtimes": ["lxc"]}, "runtimes: 'lxc': name some of containerd, docker, crio, podman"),
        ({"runtimes": [1]}, "runtimes: 1: name some of"),
        ({"runtimes": [None]}, "runtimes: null: name some of"),
        ({"cdi": "yes"}, "cdi is a string ('yes'), and takes true or false"),
        ({"cdi": 1}, "cdi is an integer (1), and takes true or false"),
        ({"runtime": []}, "'runtime' is no setting of this unit (it takes cdi, runtimes)"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused) as refused:
        check(settings)
    assert said in refused.value.message


def test_only_what_is_named_is_configured() -> None:
    host = everything(toolkit=True)
    assert go(UNIT, host, {"runtimes": ["docker"]}).state == "converged"
    assert host.restarts == ["docker"]
    assert host.text(CRIO) is None


def test_a_runtime_that_is_named_and_missing_is_waited_for_while_the_others_go_on() -> None:
    host = host_with(docker="28.5.2")
    waits = go(UNIT, host, {"runtimes": ["crio", "docker"]})
    assert [(wait.reason, "crio is named in runtimes" in wait.message) for wait in waits.pending] == [
        ("NotReady", True)
    ]
    assert host.restarts == ["docker"]


def test_without_cdi_the_runtimes_alone() -> None:
    host = everything(toolkit=True)
    assert go(UNIT, host, {"cdi": False}).state == "converged"
    assert host.text(RUNTIME) == PACKAGED
    assert host.text(SPEC) is None
    assert "features" not in json.loads(host.text(DAEMON) or "")
    assert host.cri()["enable_cdi"] is False
    assert "nvidia" in host.cri()["containerd"]["runtimes"]


# -- Docker


def test_docker_keeps_every_key_and_its_mode() -> None:
    given = {
        "exec-opts": ["native.cgroupdriver=systemd"],
        "runtimes": {"kata": {"path": "kata"}},
        "features": {"x": True},
    }
    host = host_with(docker="28.5.2")
    host.files[DAEMON] = File(json.dumps(given), 0o600)
    assert go(UNIT, host, {}).state == "converged"
    after = json.loads(host.text(DAEMON) or "")
    assert list(after) == ["exec-opts", "runtimes", "features"]
    assert after["runtimes"] == {"kata": {"path": "kata"}, "nvidia": {"args": [], "path": "nvidia-container-runtime"}}
    assert after["features"] == {"x": True, "cdi": True}
    assert host.files[DAEMON].mode == 0o600
    assert host.restarts == ["docker"]


def test_a_docker_that_has_it_all_is_left_alone_to_the_byte() -> None:
    text = '{"features":{"cdi":true},\n"runtimes":{"nvidia":{"path":"/usr/local/bin/nvidia-container-runtime"}}}'
    host = host_with({DAEMON: text}, docker="28.5.2")
    go(UNIT, host, {})
    assert (host.text(DAEMON), host.restarts) == (text, [])


def test_docker_reads_where_our_specification_is() -> None:
    host = host_with({DAEMON: '{"cdi-spec-dirs": ["/run/cdi"]}'}, docker="28.5.2")
    go(UNIT, host, {})
    assert json.loads(host.text(DAEMON) or "")["cdi-spec-dirs"] == ["/run/cdi", "/etc/cdi"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "a": 1,\n  "b" 2}', "/etc/docker/daemon.json line 3: "),
        ('{"a":', "/etc/docker/daemon.json line 1: "),
        ('{"a": 1, "a": 2}', "/etc/docker/daemon.json: a is there twice"),
        ("[]", "it holds no JSON object"),
        ('{"runtimes": []}', "runtimes is no mapping"),
        ('{"features": 1}', "features is no mapping"),
    ],
)
def test_a_daemon_json_that_cannot_be_read_is_refused(text: str, said: str) -> None:
    host = host_with({DAEMON: text}, docker="28.5.2")
    refused = go(UNIT, host, {})
    assert refused.failure is not None
    assert refused.failure.reason == "Refused"
    assert said in refused.failure.message
    assert (host.text(DAEMON), host.restarts, host.text(SPEC)) == (text, [], None)


def test_docker_is_never_restarted_into_what_it_does_not_take() -> None:
    text = '{"bogus": 1}'
    host = host_with({DAEMON: text}, docker="28.5.2")
    failed = go(UNIT, host, {})
    assert failed.failure is not None
    assert "don't match any configuration option: bogus" in failed.failure.message
    assert (host.text(DAEMON), host.restarts) == (text, [])
    assert host.text(SPEC) is not None  # the others went on


def test_what_dockerd_says_of_its_command_line_is_not_the_files_fault() -> None:
    host = host_with(docker="28.5.2")
    plain = host.programs["dockerd"]

    def flags(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        said = plain(host, argv)
        if "--validate" not in argv or said.rc:
            return said
        path = argv[-1].partition("=")[2]
        return Answer(1, "", f"unable to configure the Docker daemon with file {path}: invalid userland-proxy-path\n")

    host.programs["dockerd"] = flags
    assert go(UNIT, host, {}).state == "converged"
    assert host.restarts == ["docker"]


def test_an_old_docker_has_no_cdi() -> None:
    host = host_with(docker="24.0.7")
    left = go(UNIT, host, {})
    assert (left.state, host.text(DAEMON)) == ("converged", None)
    assert left.notes == ("this docker has no CDI, which came with 25: it is left as it is",)
    named = go(UNIT, host, {"runtimes": ["docker"]})
    assert named.failure is not None
    assert (named.failure.reason, "take docker off runtimes" in named.failure.message) == ("Refused", True)
    assert go(UNIT, host, {"cdi": False}).state == "converged"
    assert "nvidia" in json.loads(host.text(DAEMON) or "")["runtimes"]


def test_no_file_is_written_in_the_place_of_a_link() -> None:
    host = host_with({"/srv/daemon.json": "{}"}, docker="28.5.2")
    host.links[DAEMON] = "/srv/daemon.json"
    refused = go(UNIT, host, {})
    assert refused.failure is not None
    assert "is a link or no regular file" in refused.failure.message
    assert host.text("/srv/daemon.json") == "{}"


# -- CRI-O


def test_crio_gets_a_drop_in() -> None:
    host = host_with(crio="1.30.0")
    assert go(UNIT, host, {}).state == "converged"
    assert host.text(CRIO) == HEADER + (
        "[crio]\n\n  [crio.runtime]\n\n    [crio.runtime.runtimes]\n\n      [crio.runtime.runtimes.nvidia]\n"
        '        runtime_path = "/usr/bin/nvidia-container-runtime"\n        runtime_type = "oci"\n'
    )
    assert host.restarts == ["crio"]


def test_crio_as_nvidia_ctk_left_it_is_left_alone() -> None:
    theirs = (
        '[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/bin/nvidia-container-runtime"\nruntime_type = "oci"\n'
    )
    host = host_with({"/etc/crio/crio.conf.d/99-nvidia.toml": theirs}, crio="1.30.0")
    go(UNIT, host, {})
    assert (host.text(CRIO), host.restarts) == (None, [])


def test_crio_reads_where_our_specification_is() -> None:
    host = host_with({"/etc/crio/crio.conf": '[crio.runtime]\ncdi_spec_dirs = ["/run/cdi"]\n'}, crio="1.30.0")
    go(UNIT, host, {})
    assert 'cdi_spec_dirs = ["/run/cdi", "/etc/cdi"]' in (host.text(CRIO) or "")


def test_what_crio_reads_after_ours_is_refused_where_it_says_otherwise() -> None:
    theirs = '[crio.runtime.runtimes.nvidia]\nruntime_path = "/opt/other"\n'
    host = host_with({"/etc/crio/crio.conf.d/zzz": theirs}, crio="1.30.0")
    refused = go(UNIT, host, {})
    assert refused.failure is not None
    assert "/etc/crio/crio.conf.d/zzz is read after it" in refused.failure.message


def test_toml_that_cannot_be_read_is_refused_by_file_and_line() -> None:
    host = host_with({"/etc/crio/crio.conf.d/10-x": "[crio]\na = = 1\n"}, crio="1.30.0")
    refused = go(UNIT, host, {})
    assert refused.failure is not None
    assert refused.failure.message.startswith("/etc/crio/crio.conf.d/10-x line 2: ")


# -- who may choose GPUs


def test_the_cdi_only_keys_are_set_and_the_rest_stays_to_the_byte() -> None:
    host = host_with()
    go(UNIT, host, {})
    after = host.text(RUNTIME) or ""
    assert after.splitlines()[:4] == [
        f"#{MOUNTS} = false",
        f"{MOUNTS} = false",
        f"#{ENVVAR} = true",
        f"{ENVVAR} = false",
    ]
    assert after.replace(f"\n{MOUNTS} = false", "", 1).replace(f"\n{ENVVAR} = false", "", 1) == PACKAGED


def test_keys_that_hand_gpus_out_are_turned_round() -> None:
    text = f"{ENVVAR} = true # as it was\n{MOUNTS} = false\n\n[x]\n{ENVVAR} = true\n"
    host = host_with()
    host.files[RUNTIME] = File(text, 0o640)
    go(UNIT, host, {})
    assert host.text(RUNTIME) == text.replace("true # as it was", "false # as it was")
    assert host.files[RUNTIME].mode == 0o640


def test_a_missing_configuration_of_the_toolkit_is_made() -> None:
    host = host_with()
    del host.files[RUNTIME]
    go(UNIT, host, {})
    assert host.text(RUNTIME) == f"{ENVVAR} = false\n{MOUNTS} = false\n"


# -- nvidia-cdi-refresh


def test_the_refresh_service_is_steered_and_its_other_lines_stay() -> None:
    host = host_with()
    host.unpack(refresh=True)
    host.put(REFRESH_ENV, ENVIRONMENT + "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/var/run/cdi/nvidia.yaml\nX=1\n")
    go(UNIT, host, {})
    assert host.text(REFRESH_ENV) == ENVIRONMENT + (
        "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/etc/cdi/nvidia.json\nX=1\n"
        "NVIDIA_CTK_CDI_GENERATE_OUTPUT_FORMAT=json\nNVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES=uuid\n"
    )
    second_pass_is_quiet(UNIT, host, {})


def test_without_the_service_its_file_is_not_made() -> None:
    host = host_with()
    go(UNIT, host, {})
    assert host.text(REFRESH_ENV) is None


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", "P\nF\nS\n"),
        ("A=1", "A=1\nP\nF\nS\n"),
        ("P\nF\nS\n", "P\nF\nS\n"),
        ('NVIDIA_CTK_CDI_OUTPUT_FILE_PATH="/etc/cdi/nvidia.json"\nF\nS\n', None),
        ("NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/a\nNVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/b\n", "P\nF\nS\n"),
        ("; NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/a\n", "; NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/a\nP\nF\nS\n"),
    ],
)
def test_the_environment_file(text: str, after: str | None) -> None:
    words = {
        "P": "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/etc/cdi/nvidia.json",
        "F": "NVIDIA_CTK_CDI_GENERATE_OUTPUT_FORMAT=json",
        "S": "NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES=uuid",
    }

    def spelled(short: str) -> str:
        return "".join(
            words.get(line.strip(), line.strip("\n")) + line[len(line.rstrip("\n")) :]
            for line in short.splitlines(True)
        )

    assert steered(spelled(text)) == spelled(text if after is None else after)


def test_what_others_set_for_nvidia_ctk_reaches_our_own_calls() -> None:
    line = "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS=disable-nvsandboxutils"
    assert settings_of(f"# x\n{line}\nX=1\nNVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/a\n") == (line,)
    host = host_with()
    host.unpack(refresh=True)
    host.put(REFRESH_ENV, line + "\n")
    go(UNIT, host, {})
    assert ("env", line, "nvidia-ctk", "cdi", "generate", "--format=json", "--device-name-strategy=uuid") in host.asked


def test_a_hung_program_fails_its_own_lane() -> None:
    host = host_with(docker="28.5.2", crio="1.30.0")
    host.programs["dockerd"] = lambda _host, _argv: Answer(137, "", "Killed")
    failed = go(UNIT, host, {})
    assert failed.failure is not None
    assert host.restarts == ["crio"]


@pytest.mark.parametrize("program", ["containerd", "dockerd", "systemctl"])
def test_a_program_that_hangs_fails_its_own_lane_and_the_next_pass_goes_on(program: str) -> None:
    host = everything(toolkit=True)
    good = host.programs[program]

    def hangs(_host: FakeHost, argv: tuple[str, ...]) -> Answer:
        raise StepFailed(f"{' '.join(argv)} did not end within 60 seconds: see what it waits for")

    host.programs[program] = hangs
    failed = go(UNIT, host, {})
    assert failed.state == "progressing"
    assert failed.failure is not None
    assert "did not end within 60 seconds" in failed.failure.message
    assert host.text(SPEC) is not None
    host.programs[program] = good
    assert go(UNIT, host, {}).state == "converged"
    assert sorted(set(host.restarts)) == ["containerd", "crio", "docker"]


def test_a_restart_that_fails_is_told_and_made_by_the_next_pass() -> None:
    host = everything(toolkit=True)
    good = host.programs["systemctl"]

    def fails(host: FakeHost, argv: tuple[str, ...]) -> Answer:
        stopped = argv[1:] == ("restart", "docker.service")
        return Answer(1, "", "Job for docker.service failed") if stopped else good(host, argv)

    host.programs["systemctl"] = fails
    failed = go(UNIT, host, {})
    assert failed.failure is not None
    assert "systemctl restart docker.service exited with 1" in failed.failure.message
    host.programs["systemctl"] = good
    again = go(UNIT, host, {})
    assert again.state == "converged"
    assert lines(again) == ["restart docker, which reads its configuration only then"]
