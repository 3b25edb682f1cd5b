# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""container-toolkit and containerd: whatever the files of others say, they go on saying it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.step import File
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.toml_text import render
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.container_toolkit import UNIT
from tests.gpu.model import Machine
from tests.unit.container_host import CONFIG, DEBIAN, DROP_IN, OLD, ContainerHost
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet

ONLY = {"runtimes": ["containerd"]}
IMPORTS = 'imports = ["/etc/containerd/conf.d/*.toml"]\n'
MIRRORS = f'''version = 2
{IMPORTS}[plugins."{OLD}"]
  sandbox_image = "registry.example/pause:3.9"
  [plugins."{OLD}".registry]
    config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.internal.v1.opt"]
  path = "/srv/opt"
'''
# What another tool has: on 1.x it replaces the table of config.toml.
KUBERNETES = "/etc/containerd/conf.d/90-k8s.toml"
SYSTEMD = f'''version = 2
[plugins."{OLD}"]
  enable_cdi = true
  sandbox_image = "registry.example/pause:3.10"
  [plugins."{OLD}".registry.mirrors."docker.io"]
    endpoint = ["https://mirror.example"]
  [plugins."{OLD}".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."{OLD}".containerd.runtimes.runc.options]
      SystemdCgroup = true
'''
CTK = "/etc/containerd/conf.d/99-nvidia.toml"
# What nvidia-ctk runtime configure writes where there is no configuration.
BY_CTK = f'''version = 2

[plugins]

  [plugins."{OLD}"]
    enable_cdi = true

    [plugins."{OLD}".containerd]

      [plugins."{OLD}".containerd.runtimes]

        [plugins."{OLD}".containerd.runtimes.nvidia]
          privileged_without_host_devices = false
          runtime_engine = ""
          runtime_root = ""
          runtime_type = "io.containerd.runc.v2"

          [plugins."{OLD}".containerd.runtimes.nvidia.options]
            BinaryName = "/usr/bin/nvidia-container-runtime"
'''
VERSIONS = ("1.7.24", "2.1.9")
LAYOUTS = {
    "none": {},
    "debian": {CONFIG: DEBIAN},
    "mirrors": {CONFIG: MIRRORS},
    "kubernetes": {CONFIG: MIRRORS, KUBERNETES: SYSTEMD},
    "comments only": {CONFIG: "# here be dragons"},
    "no version": {CONFIG: 'root = "/srv/containerd"\n'},
    "another folder": {CONFIG: 'version = 2\nimports = ["/etc/containerd/config.d/*.toml"]\n'},
    "single files": {CONFIG: 'version = 2\nimports = ["/etc/containerd/a.toml"]\n', "/etc/containerd/a.toml": SYSTEMD},
}


def host_with(version: str, files: dict[str, str]) -> ContainerHost:
    return ContainerHost(Machine.from_products(["H100-80GB"]), {"containerd": version}, files)


def ours(path: tuple[str, ...]) -> bool:
    return path[-1] in ("enable_cdi", "cdi_spec_dirs", "imports", "version") or "nvidia" in path


def leaves(table: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    """Every value of a configuration by the keys that lead to it."""
    found: dict[tuple[str, ...], Any] = {}
    pending: list[tuple[tuple[str, ...], Any]] = [((), table)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, dict):
            pending += [((*path, key), below) for key, below in reversed(value.items())]
        else:
            found[path] = value
    return found


def lost(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, ...]]:
    found = leaves(after)
    return [path for path, value in leaves(before).items() if not ours(path) and found.get(path) != value]


def refusal(outcome: Outcome) -> str:
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable) == ("Refused", False)
    return outcome.failure.message


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_no_key_of_anyone_is_lost(version: str, layout: str) -> None:
    host = host_with(version, LAYOUTS[layout])
    before = host.dump()
    done = go(UNIT, host, ONLY)
    assert (done.state, done.failure) == ("converged", None)
    gone = lost(before, host.dump())
    cgroup = [path for path in gone if path[-1] == "SystemdCgroup"]
    assert gone == cgroup
    assert bool(cgroup) is (layout in ("none", "comments only"))  # a first configuration has systemd's cgroups
    cri = host.cri()
    assert cri["enable_cdi"] is True
    nvidia = cri["containerd"]["runtimes"]["nvidia"]
    assert nvidia["runtime_type"] == "io.containerd.runc.v2"
    assert nvidia["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    runc = cri["containerd"]["runtimes"]["runc"]["options"]
    assert nvidia["options"]["SystemdCgroup"] == runc["SystemdCgroup"]
    assert host.restarts == ["containerd"]
    second_pass_is_quiet(UNIT, host, ONLY)
    assert host.restarts == ["containerd"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_check_mode_is_truthful(version: str, layout: str) -> None:
    check_is_truthful(UNIT, lambda: host_with(version, LAYOUTS[layout]), ONLY)


@pytest.mark.exhaustive
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("layout", ["none", "debian", "kubernetes"])
def test_a_kill_anywhere_loses_nothing(version: str, layout: str) -> None:
    def shown(host: Any) -> object:
        return {path: file.text for path, file in host.files.items() if path.startswith("/etc/")}, set(host.restarts)

    a_kill_loses_nothing(UNIT, lambda: host_with(version, LAYOUTS[layout]), ONLY, shown)


def test_the_drop_in_of_1_7_carries_the_whole_table() -> None:
    host = host_with("1.7.24", LAYOUTS["kubernetes"])
    go(UNIT, host, ONLY)
    assert (
        host.text(DROP_IN)
        == f'''# Managed by bettercompute.bcd: local edits are replaced.
# For container-toolkit.
version = 2

[plugins]

  [plugins."{OLD}"]
    enable_cdi = true
    sandbox_image = "registry.example/pause:3.10"

    [plugins."{OLD}".registry]

      [plugins."{OLD}".registry.mirrors]

        [plugins."{OLD}".registry.mirrors."docker.io"]
          endpoint = ["https://mirror.example"]

    [plugins."{OLD}".containerd]

      [plugins."{OLD}".containerd.runtimes]

        [plugins."{OLD}".containerd.runtimes.runc]
          runtime_type = "io.containerd.runc.v2"

          [plugins."{OLD}".containerd.runtimes.runc.options]
            SystemdCgroup = true

        [plugins."{OLD}".containerd.runtimes.nvidia]
          privileged_without_host_devices = false
          runtime_type = "io.containerd.runc.v2"

          [plugins."{OLD}".containerd.runtimes.nvidia.options]
            BinaryName = "/usr/bin/nvidia-container-runtime"
            SystemdCgroup = true
'''
    )


def test_the_drop_in_of_2_x_is_our_keys_alone_in_the_configurations_own_version() -> None:
    host = host_with("2.1.9", LAYOUTS["kubernetes"])
    go(UNIT, host, ONLY)
    text = host.text(DROP_IN) or ""
    assert "version = 2\n" in text
    assert OLD in text
    assert "registry" not in text
    assert "runc]" not in text
    fresh = host_with("2.1.9", {CONFIG: "version = 3\n"})
    go(UNIT, fresh, ONLY)
    assert "version = 3\n" in (fresh.text(DROP_IN) or "")
    assert "io.containerd.cri.v1.runtime" in (fresh.text(DROP_IN) or "")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_first_configuration_starts_from_containerds_defaults_with_systemds_cgroups(version: str) -> None:
    host = host_with(version, {})
    go(UNIT, host, ONLY)
    assert host.cri()["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True
    other = host_with(version, {})
    del other.files["/run/systemd/system"]
    other.running = set()
    go(UNIT, other, ONLY)
    assert other.cri()["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is False


@pytest.mark.parametrize("version", VERSIONS)
def test_what_others_write_later_is_carried_on(version: str) -> None:
    host = host_with(version, LAYOUTS["debian"])
    go(UNIT, host, ONLY)
    host.put(KUBERNETES, SYSTEMD)
    go(UNIT, host, ONLY)
    cri = host.cri()
    assert cri["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True
    assert cri["containerd"]["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is True
    assert "mirror.example" in str(host.dump())
    assert host.restarts == ["containerd"] * 2


def test_a_lost_import_is_found_and_made_again() -> None:
    host = host_with("1.7.24", LAYOUTS["debian"])
    go(UNIT, host, ONLY)
    host.put(CONFIG, DEBIAN)
    assert "nvidia" not in host.cri()["containerd"]["runtimes"]
    again = go(UNIT, host, ONLY)
    assert lines(again)[1] == f"import /etc/containerd/conf.d/*.toml in {CONFIG}"
    assert "nvidia" in host.cri()["containerd"]["runtimes"]
    assert host.text(CONFIG) == DEBIAN.replace("version = 2\n", "version = 2\n" + IMPORTS)


def test_the_drop_in_lies_where_containerd_looks() -> None:
    host = host_with("1.7.24", LAYOUTS["another folder"])
    go(UNIT, host, ONLY)
    assert host.text("/etc/containerd/config.d/99-zz-bcd.toml") is not None
    assert host.text(DROP_IN) is None
    host = host_with("1.7.24", {**LAYOUTS["another folder"], DROP_IN: "version = 2\n"})
    assert f"remove {DROP_IN}, which is ours and in another place now" in lines(go(UNIT, host, ONLY))


@pytest.mark.parametrize("version", VERSIONS)
def test_what_nvidia_ctk_configured_is_left_alone(version: str) -> None:
    runc = SYSTEMD[SYSTEMD.index(f'  [plugins."{OLD}".containerd') :].replace("true", "false")
    host = host_with(version, {CONFIG: "version = 2\n" + IMPORTS, CTK: BY_CTK + runc})
    done = go(UNIT, host, ONLY)
    assert (done.state, host.text(DROP_IN), host.restarts) == ("converged", None, [])
    assert done.notes == ()


def test_nvidia_ctks_copy_that_hides_others_is_named() -> None:
    host = host_with("1.7.24", {**LAYOUTS["kubernetes"], CTK: BY_CTK})
    assert "runc" not in host.cri()["containerd"]["runtimes"]  # what it did to this host
    done = go(UNIT, host, ONLY)
    assert any(
        note.startswith(f"{CTK}, which nvidia-ctk runtime configure wrote, replaces what {KUBERNETES}")
        for note in done.notes
    )
    del host.files[CTK]
    go(UNIT, host, ONLY)
    assert host.cri()["containerd"]["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is True


def test_specifications_are_read_where_ours_is() -> None:
    host = host_with("1.7.24", {CONFIG: f'version = 2\n[plugins."{OLD}"]\ncdi_spec_dirs = ["/run/cdi"]\n'})
    go(UNIT, host, ONLY)
    assert host.cri()["cdi_spec_dirs"] == ["/run/cdi", "/etc/cdi"]


def test_only_the_mode_differs_and_nothing_restarts() -> None:
    host = host_with("1.7.24", LAYOUTS["debian"])
    go(UNIT, host, ONLY)
    host.files[DROP_IN] = File(host.text(DROP_IN) or "", 0o600)
    assert go(UNIT, host, ONLY).changed is True
    assert host.restarts == ["containerd"]


def test_a_configuration_keeps_its_mode() -> None:
    host = host_with("1.7.24", {})
    host.files[CONFIG] = File(DEBIAN, 0o600)
    go(UNIT, host, ONLY)
    assert host.files[CONFIG].mode == 0o600


OPTIONS = st.fixed_dictionaries({}, optional={"SystemdCgroup": st.booleans(), "BinaryName": st.just("/usr/bin/runc")})
RUNTIMES = st.fixed_dictionaries(
    {"runtime_type": st.just("io.containerd.runc.v2")}, optional={"options": OPTIONS, "sandbox_mode": st.just("x")}
)
TABLES = st.fixed_dictionaries(
    {},
    optional={
        "enable_cdi": st.booleans(),
        "cdi_spec_dirs": st.sampled_from([["/run/cdi"], ["/etc/cdi"], []]),
        "sandbox_image": st.sampled_from(["a", "b"]),
        "registry": st.fixed_dictionaries(
            {},
            optional={
                "config_path": st.just("/etc/containerd/certs.d"),
                "mirrors": st.dictionaries(
                    st.sampled_from(["docker.io", "*"]), st.fixed_dictionaries({"endpoint": st.just(["https://m"])})
                ),
            },
        ),
        "containerd": st.fixed_dictionaries(
            {},
            optional={
                "default_runtime_name": st.sampled_from(["runc", "kata"]),
                "runtimes": st.dictionaries(st.sampled_from(["runc", "kata"]), RUNTIMES),
            },
        ),
    },
)
FILES = st.dictionaries(st.sampled_from(["10-a", "90-k8s", "99-nvidia", "zz"]), TABLES, max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(VERSIONS), TABLES, FILES, st.booleans())
def test_whatever_files_there_are_nothing_is_lost_or_nothing_is_written(
    version: str, table: dict[str, Any], drop_ins: dict[str, dict[str, Any]], imported: bool
) -> None:
    imports = {"imports": ["/etc/containerd/conf.d/*.toml"]} if imported else {}
    files = {CONFIG: render({"version": 2, **imports, "plugins": {OLD: table}})}
    for name, inside in drop_ins.items():
        files[f"/etc/containerd/conf.d/{name}.toml"] = render({"version": 2, "plugins": {OLD: inside}})
    host = host_with(version, files)
    before = host.dump()
    done = go(UNIT, host, ONLY)
    if done.failure is not None:
        assert done.failure.reason == "Refused"
        assert {path: host.text(path) for path in files} == files
        assert host.restarts == []
        # 2.x merges: nothing is in the way but what nobody imported, and a later file that says otherwise.
        assert version == "1.7.24" or not imported or "zz" in drop_ins
        return
    assert lost(before, host.dump()) == []
    cri = host.cri()
    assert cri["enable_cdi"] is True
    assert "/etc/cdi" in cri["cdi_spec_dirs"]
    assert cri["containerd"]["runtimes"]["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    second_pass_is_quiet(UNIT, host, ONLY)


# -- what is refused, with nothing written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = 1\n[plugins.cri]\n", "is of version 1, which no drop-in can extend"),
        ("[plugins.cri]\n", "is of version 1, which no drop-in can extend"),
        ("version = 2\na = = 1\n", f"{CONFIG} line 2: "),
        (
            'version = 2\nimports = ["/etc/containerd/missing.toml"]\n',
            "open /etc/containerd/missing.toml: no such file",
        ),
    ],
)
def test_what_cannot_be_extended_is_refused(text: str, said: str) -> None:
    host = host_with("1.7.24", {CONFIG: text})
    assert said in refusal(go(UNIT, host, ONLY))
    assert (host.text(CONFIG), host.text(DROP_IN), host.restarts) == (text, None, [])


def test_a_drop_in_that_cannot_be_read_is_refused_by_file_and_line() -> None:
    host = host_with("1.7.24", {CONFIG: "version = 2\n" + IMPORTS, "/etc/containerd/conf.d/10-x.toml": "\n[a\n"})
    assert refusal(go(UNIT, host, ONLY)).startswith("/etc/containerd/conf.d/10-x.toml line 2: ")


def test_a_file_that_is_read_after_ours_and_replaces_it_is_named() -> None:
    late = "/etc/containerd/conf.d/zz.toml"
    host = host_with("1.7.24", {CONFIG: "version = 2\n" + IMPORTS, late: SYSTEMD})
    assert f"{late} is read after it" in refusal(go(UNIT, host, ONLY))
    modern = host_with("2.1.9", {CONFIG: "version = 2\n" + IMPORTS, late: SYSTEMD})
    assert go(UNIT, modern, ONLY).state == "converged"


def test_imports_of_imports_are_read_last() -> None:
    files = {
        CONFIG: 'version = 2\nimports = ["/etc/containerd/a.toml"]\n',
        "/etc/containerd/a.toml": 'version = 2\nimports = ["/etc/containerd/b.toml"]\n',
        "/etc/containerd/b.toml": SYSTEMD,
    }
    assert "/etc/containerd/b.toml is read after it" in refusal(go(UNIT, host_with("1.7.24", files), ONLY))
    modern = host_with("2.1.9", files)
    assert go(UNIT, modern, ONLY).state == "converged"
    assert modern.cri()["containerd"]["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is True


def test_an_import_that_would_bring_a_change_of_others_along_is_refused() -> None:
    host = host_with("1.7.24", {CONFIG: MIRRORS.replace(IMPORTS, ""), KUBERNETES: SYSTEMD})
    said = refusal(go(UNIT, host, ONLY))
    assert f"with {KUBERNETES}, which nothing imports yet, would change plugins.{OLD}.sandbox_image" in said
    assert (host.text(DROP_IN), host.restarts) == (None, [])


@pytest.mark.parametrize("text", ['disabled_plugins = ["cri"]\n', f'version = 2\ndisabled_plugins = ["{OLD}"]\n'])
def test_without_the_cri_plugin_there_is_nothing_to_configure(text: str) -> None:
    host = host_with("1.7.27", {CONFIG: text})
    done = go(UNIT, host, ONLY)
    assert (done.state, host.text(DROP_IN), host.restarts) == ("converged", None, [])
    assert "CRI plugin is off" in done.notes[0]


def test_a_drop_in_may_turn_the_cri_plugin_off_too() -> None:
    off = f'version = 2\ndisabled_plugins = ["{OLD}"]\n'
    host = host_with("1.7.27", {CONFIG: "version = 2\n" + IMPORTS, "/etc/containerd/conf.d/a.toml": off})
    done = go(UNIT, host, ONLY)
    assert (done.state, host.text(DROP_IN)) == ("converged", None)
    assert "has no CRI plugin, or it is off" in done.notes[0]


def test_a_containerd_without_cdi() -> None:
    host = host_with("1.6.20", LAYOUTS["debian"])
    assert "has no CDI, which came with 1.7" in refusal(go(UNIT, host, ONLY))
    assert go(UNIT, host, {}).notes == ("this containerd has no CDI, which came with 1.7: it is left as it is",)
    assert host.text(DROP_IN) is None
    assert go(UNIT, host, {**ONLY, "cdi": False}).state == "converged"
    assert "nvidia" in host.cri()["containerd"]["runtimes"]
    assert "runc" in host.cri()["containerd"]["runtimes"]
