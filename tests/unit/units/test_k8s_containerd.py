# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd for a kubelet, alone and beside container-toolkit: nothing of anyone is lost, in whatever order.

What containerd makes of files is played as 1.6.20, 1.7.24 and 2.1.9 were seen to (see container_host).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.host import Host
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.outcome import Outcome
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Past, Plan, Todo, Unit
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.unknown import later
from ansible_collections.bettercompute.bcd.plugins.module_utils.look.containerd import containerd_files
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import containerd_kube, containerd_kube_back
from ansible_collections.bettercompute.bcd.plugins.module_utils.units.container_toolkit import UNIT as TOOLKIT
from tests.gpu.model import Machine
from tests.unit.container_host import BEFORE, CONFIG, DEBIAN, DROP_IN, NEW, OLD, SOCKET, VERSION, ContainerHost, of
from tests.unit.fake_host import Killed
from tests.unit.promises import a_kill_loses_nothing, check_is_truthful, go, lines, second_pass_is_quiet

ONLY = {"runtimes": ["containerd"]}  # of container-toolkit
IMPORTS = 'imports = ["/etc/containerd/conf.d/*.toml"]\n'
CTK = "/etc/containerd/conf.d/99-nvidia.toml"
CNI, DEBIAN_CNI = "/opt/cni/bin/loopback", "/usr/lib/cni/loopback"
RUNC = f'''[plugins."{OLD}".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
'''
NVIDIA = f'''[plugins."{OLD}".containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"
  [plugins."{OLD}".containerd.runtimes.nvidia.options]
    BinaryName = "/usr/bin/nvidia-container-runtime"
'''
# An operator's configuration for GPUs: each of these keys was seen to go with a drop-in that has only others.
FOREIGN = f'''version = 2
{IMPORTS}oom_score = -500
[plugins."{OLD}"]
  sandbox_image = "registry.example/pause:3.8"
  [plugins."{OLD}".registry]
    config_path = "/etc/containerd/certs.d"
[plugins."{OLD}".containerd]
  default_runtime_name = "nvidia"
{RUNC}{NVIDIA}[plugins."{OLD}".containerd.runtimes.kata]
  runtime_type = "io.containerd.kata.v2"
'''
# What nvidia-ctk writes beside it: a copy of the table of config.toml, with the runtime nvidia.
BY_CTK = "version = 2\n" + FOREIGN[FOREIGN.index("[plugins.") :]


def by_ctk(config: str, version: str) -> str:
    """nvidia-ctk's drop-in: the table of config.toml as it is, and the runtime nvidia, in that file's version."""
    if config == "foreign":
        return BY_CTK
    if config == "debian":
        return DEBIAN + RUNC + NVIDIA
    return f"version = {version}\n" + (RUNC + NVIDIA).replace(OLD, OLD if version == "2" else NEW)


# Docker's package: everything but one line is commented out.
DOCKERS = '#   Copyright 2018-2022 Docker Inc.\n\ndisabled_plugins = ["cri"]\n\n#root = "/var/lib/containerd"\n'
OLDER, VERSIONS = "1.6.20", ("1.6.20", "1.7.24", "2.1.9")
LAYOUTS: dict[str, dict[str, str]] = {
    "none": {},
    "debian": {CONFIG: DEBIAN},
    "foreign": {CONFIG: FOREIGN},
    "toolkit's drop-in": {CONFIG: FOREIGN, CTK: BY_CTK},
    "comments only": {CONFIG: "# here be dragons"},
    "another folder": {CONFIG: 'version = 2\nimports = ["/etc/containerd/config.d/*.toml"]\n'},
    "other imports": {
        CONFIG: 'version = 2\nimports = ["/etc/containerd/a.toml"]\n',
        "/etc/containerd/a.toml": "version = 2\n" + RUNC,
    },
    "version 3": {CONFIG: f'version = 3\n{IMPORTS}[plugins."{NEW}".containerd]\ndefault_runtime_name = "runc"\n'},
}


def plays(version: str, layout: str) -> bool:
    return layout != "version 3" or version.startswith("2")


CASES = [(version, layout) for version in VERSIONS for layout in LAYOUTS if plays(version, layout)]


def look(host: Host, _settings: Any, _past: Past) -> Any:
    return later(containerd_files, host)


def plan(_settings: Any, now: Any, past: Past) -> Plan:
    todo = Todo()
    containerd_kube.plan(todo, now, past)
    return todo.plan()


def absent(now: Any, past: Past) -> Plan:
    todo = Todo()
    containerd_kube_back.absent(todo, now, past)
    return todo.plan()


KUBE = Unit("k8s-join", (), lambda given: given, look, plan, absent)
BOTH = {"kube": (KUBE, {}), "toolkit": (TOOLKIT, ONLY)}


def host_with(version: str, files: dict[str, str], cni: tuple[str, ...] = (CNI,)) -> ContainerHost:
    host = ContainerHost(Machine.from_products(["H100-80GB"]), {"containerd": version}, files)
    for path in cni:
        host.put(path, "")
    return host


def leaves(table: dict[str, Any], above: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, value in table.items():
        found.update(leaves(value, (*above, key)) if isinstance(value, dict) else {(*above, key): value})
    return found


def lost(before: dict[str, Any], after: dict[str, Any], ours: Callable[[tuple[str, ...]], bool]) -> list[str]:
    """What differs and is not ours: changed, gone, or there only now."""
    was, found = leaves(before), leaves(after)
    return [".".join(path) for path in {**was, **found} if found.get(path) != was.get(path) and not ours(path)]


def of_kube(path: tuple[str, ...]) -> bool:
    return path[-1] in ("SystemdCgroup", "enable_cdi", "cdi_spec_dirs", "imports", "version", "bin_dir", "bin_dirs")


def of_both(path: tuple[str, ...]) -> bool:
    return of_kube(path) or "nvidia" in path


def is_for_kube(host: ContainerHost) -> bool:
    """Whether what containerd reads is as a kubelet needs it."""
    cri = host.cri()
    kinds = {name: runtime for name, runtime in cri["containerd"]["runtimes"].items() if name != "kata"}
    systemd = all(runtime["options"].get("SystemdCgroup") is True for runtime in kinds.values())
    modern = "enable_cdi" in cri
    cdi = not modern or (cri["enable_cdi"] is True and {"/etc/cdi", "/var/run/cdi"} <= {*cri["cdi_spec_dirs"]})
    return bool(kinds) and systemd and cdi


def is_for_toolkit(host: ContainerHost) -> bool:
    """Whether it has the runtime nvidia, with CDI on."""
    nvidia = host.cri()["containerd"]["runtimes"].get("nvidia", {})
    return bool(nvidia.get("options", {}).get("BinaryName") == "/usr/bin/nvidia-container-runtime") and (
        host.cri()["enable_cdi"] is True
    )


def failure(outcome: Outcome, reason: str = "Refused", retryable: bool = False) -> str:
    assert outcome.failure is not None
    assert (outcome.failure.reason, outcome.failure.retryable) == (reason, retryable)
    return outcome.failure.message


def etc(host: Any) -> dict[str, tuple[str, int]]:
    return {path: (file.text, file.mode) for path, file in host.files.items() if path.startswith("/etc/containerd")}


def written(host: ContainerHost) -> str:
    """The version of config.toml."""
    return next(line[-1] for line in (host.text(CONFIG) or "").splitlines() if line.startswith("version = "))


def killed_before(change: str, unit: Unit, machine: Callable[[], ContainerHost], settings: Any) -> ContainerHost:
    """The host after a pass that was killed where it was about to make a change."""
    for at in range(1, 60):
        host = machine()
        host.kill_at = at
        try:
            go(unit, host, settings)
        except Killed as call:
            host.kill_at = 0
            if change in str(call):
                return host
    raise AssertionError(f"no pass makes the change {change}")


# -- alone


@pytest.mark.parametrize(("version", "layout"), CASES)
def test_it_is_as_a_kubelet_needs_it_and_nothing_of_anyone_is_lost(version: str, layout: str) -> None:
    host = host_with(version, LAYOUTS[layout])
    before = host.dump()
    done = go(KUBE, host, {})
    assert (done.state, done.failure) == ("converged", None)
    assert lost(before, host.dump(), of_kube) == []
    assert is_for_kube(host)
    assert host.restarts == ["containerd"]
    assert host.text(BEFORE) is None
    for path, text in LAYOUTS[layout].items():
        assert path == CONFIG or host.text(path) == text
    second_pass_is_quiet(KUBE, host, {})


@pytest.mark.parametrize(("version", "layout"), CASES)
def test_check_mode_is_truthful(version: str, layout: str) -> None:
    check_is_truthful(KUBE, lambda: host_with(version, LAYOUTS[layout]), {})


@pytest.mark.exhaustive
@pytest.mark.parametrize(("version", "layout"), CASES)
def test_a_kill_anywhere_loses_nothing(version: str, layout: str) -> None:
    def shown(host: Any) -> object:
        return etc(host), host.text(BEFORE), sorted(host.running)

    a_kill_loses_nothing(KUBE, lambda: host_with(version, LAYOUTS[layout]), {}, shown)


def test_a_restart_is_a_disruption_of_services() -> None:
    host = host_with("1.7.24", {CONFIG: FOREIGN})
    held = go(KUBE, host, {}, max_disruption="none")
    assert [wait.reason for wait in held.pending] == ["HeldBack"]
    assert host.restarts == []
    done = go(KUBE, host, {})
    assert (done.state, host.restarts, host.text(BEFORE)) == ("converged", ["containerd"], None)


def test_the_drop_in_of_2_x_has_only_what_differs_in_the_configurations_own_version() -> None:
    host = host_with("2.1.9", {CONFIG: FOREIGN.replace(NVIDIA, "")})
    go(KUBE, host, {})
    assert (
        host.text(DROP_IN)
        == f'''# Managed by bettercompute.bcd: local edits are replaced.
# For k8s-join.
version = 2

[plugins]

  [plugins."{OLD}"]

    [plugins."{OLD}".containerd]

      [plugins."{OLD}".containerd.runtimes]

        [plugins."{OLD}".containerd.runtimes.runc]
          runtime_type = "io.containerd.runc.v2"

          [plugins."{OLD}".containerd.runtimes.runc.options]
            SystemdCgroup = true
'''
    )
    modern = host_with("2.1.9", LAYOUTS["version 3"])
    go(KUBE, modern, {})
    text = modern.text(DROP_IN) or ""
    assert "version = 3\n" in text
    assert f'plugins."{NEW}".containerd.runtimes.runc.options' in text
    assert OLD not in text


def test_from_2_3_on_there_is_a_version_4_of_the_main_file_and_a_drop_in_of_version_3_beside_it() -> None:
    host = host_with("2.3.0", {CONFIG: f"version = 4\n{IMPORTS}"})
    done = go(KUBE, host, {})
    assert (done.state, is_for_kube(host)) == ("converged", True)
    assert "version = 3\n" in (host.text(DROP_IN) or "")
    assert (host.text(CONFIG) or "").startswith("version = 4\n")


@pytest.mark.parametrize("version", VERSIONS)
def test_what_others_made_so_already_is_left_alone(version: str) -> None:
    options = f'''  [plugins."{OLD}".containerd.runtimes.runc.options]
    SystemdCgroup = true
'''
    cdi = f'[plugins."{OLD}"]\nenable_cdi = true\ncdi_spec_dirs = ["/etc/cdi", "/run/cdi"]\n'
    host = host_with(version, {CONFIG: f"version = 2\n{cdi}{RUNC}{options}"})
    done = go(KUBE, host, {})
    assert (done.state, done.changed, host.restarts, host.text(DROP_IN)) == ("converged", False, [], None)


def test_without_cdi_that_is_said_and_the_rest_is_done() -> None:
    host = host_with(OLDER, {CONFIG: FOREIGN})
    done = go(KUBE, host, {})
    assert (done.state, is_for_kube(host)) == ("converged", True)
    assert "has no CDI, which came with 1.7" in " ".join(done.notes)
    assert "cdi" not in (host.text(DROP_IN) or "")


def test_a_table_that_not_everyone_may_read_is_carried_where_not_everyone_may_read_it() -> None:
    host = host_with("1.7.24", {CONFIG: FOREIGN})
    host.files[CONFIG] = host.files[CONFIG]._replace(mode=0o600)
    go(KUBE, host, {})
    assert (host.files[DROP_IN].mode, host.files[CONFIG].mode) == (0o600, 0o600)
    second_pass_is_quiet(KUBE, host, {})


@pytest.mark.parametrize("version", VERSIONS)
def test_an_import_that_another_tool_took_away_is_made_again(version: str) -> None:
    host = host_with(version, {CONFIG: FOREIGN})
    go(KUBE, host, {})
    host.put(CONFIG, FOREIGN.replace(IMPORTS, ""))  # a template, written once more
    assert not is_for_kube(host)
    before = host.dump()
    assert go(KUBE, host, {}).state == "converged"
    assert is_for_kube(host)
    assert lost(before, host.dump(), of_kube) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_runtime_for_gpus_has_the_cgroups_too(version: str) -> None:
    host = host_with(version, {CONFIG: FOREIGN})
    assert host.cri()["containerd"]["default_runtime_name"] == "nvidia"
    go(KUBE, host, {})
    runtimes = host.cri()["containerd"]["runtimes"]
    assert runtimes["nvidia"]["options"]["SystemdCgroup"] is True
    assert "SystemdCgroup" not in runtimes["kata"].get("options", {})  # no runtime of runc's kind


# -- beside container-toolkit, in every order


@pytest.mark.parametrize("order", [("kube", "toolkit"), ("toolkit", "kube")])
@pytest.mark.parametrize("ctk", ["none", "before", "between", "after"])
@pytest.mark.parametrize("version", ["1.7.24", "2.1.9"])
@pytest.mark.parametrize("config", ["none", "debian", "foreign"])
def test_both_are_effective_whatever_the_order(version: str, config: str, ctk: str, order: tuple[str, str]) -> None:
    files = dict(LAYOUTS[config])
    if ctk == "before":  # nvidia-ctk sees to the import itself
        table = files.get(CONFIG, "version = 2\n")
        files = {CONFIG: table if IMPORTS in table else table.replace("version = 2\n", f"version = 2\n{IMPORTS}")}
        files[CTK] = by_ctk(config, "2")
    host = host_with(version, files)
    for at, name in enumerate(order):
        if at and ctk == "between":
            host.put(CTK, by_ctk(config, written(host)))
        assert go(BOTH[name][0], host, BOTH[name][1]).failure is None
    if ctk == "after":
        host.put(CTK, by_ctk(config, written(host)))
    for name in order:  # one more round settles what came in between
        assert go(BOTH[name][0], host, BOTH[name][1]).failure is None
    assert (is_for_kube(host), is_for_toolkit(host)) == (True, True)
    ours = host.files.pop(DROP_IN)
    without = host.dump()
    host.files[DROP_IN] = ours
    assert lost(without, host.dump(), of_both) == []
    restarts = list(host.restarts)
    for name in ("kube", "toolkit", "kube"):
        second_pass_is_quiet(BOTH[name][0], host, BOTH[name][1])
    assert host.restarts == restarts


def test_the_head_of_the_drop_in_says_for_whom_it_is() -> None:
    host = host_with("1.7.24", {CONFIG: DEBIAN})
    go(TOOLKIT, host, {**ONLY, "cdi": False})
    assert (host.text(DROP_IN) or "").splitlines()[1] == "# For container-toolkit (without CDI)."
    go(KUBE, host, {})
    assert (host.text(DROP_IN) or "").splitlines()[1] == "# For container-toolkit (without CDI) and k8s-join."
    go(TOOLKIT, host, ONLY)
    assert (host.text(DROP_IN) or "").splitlines()[1] == "# For container-toolkit and k8s-join."


@pytest.mark.parametrize("version", ["1.7.24", "2.1.9"])
@pytest.mark.parametrize("layout", ["none", "debian", "foreign"])
def test_each_goes_without_the_other(version: str, layout: str) -> None:
    host = host_with(version, LAYOUTS[layout])
    go(TOOLKIT, host, ONLY)
    with_toolkit = host.text(DROP_IN), leaves(host.dump())
    go(KUBE, host, {})
    assert is_for_kube(host)
    gone = go(KUBE, host, None)
    assert gone.failure is None
    assert (host.text(DROP_IN), leaves(host.dump())) == with_toolkit
    second_pass_is_quiet(KUBE, host, None)
    second_pass_is_quiet(TOOLKIT, host, ONLY)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_last_one_takes_the_file_along(version: str) -> None:
    host = host_with(version, {CONFIG: FOREIGN})
    before = leaves(host.dump())
    go(KUBE, host, {})
    done = go(KUBE, host, None)
    assert (done.failure, host.text(DROP_IN), host.text(CONFIG)) == (None, None, FOREIGN)
    assert leaves(host.dump()) == before
    assert host.restarts == ["containerd"] * 2
    assert f"{CONFIG} stays as it is" in " ".join(done.notes)
    second_pass_is_quiet(KUBE, host, None)


@pytest.mark.exhaustive
@pytest.mark.parametrize("layout", ["none", "debian", "foreign"])
def test_a_removal_is_planned_truthfully_and_survives_a_kill(layout: str) -> None:
    def machine() -> ContainerHost:
        host = host_with("1.7.24", LAYOUTS[layout])
        go(TOOLKIT, host, ONLY)
        go(KUBE, host, {})
        host.calls.clear()
        return host

    def alone() -> ContainerHost:
        host = host_with("1.7.24", LAYOUTS[layout])
        go(KUBE, host, {})
        host.calls.clear()
        return host

    for start in (machine, alone):
        check_is_truthful(KUBE, start, None)
        a_kill_loses_nothing(KUBE, start, None, lambda host: (etc(host), host.files.get(BEFORE)))


def test_the_toolkits_removal_leaves_its_part() -> None:
    host = host_with("1.7.24", {CONFIG: DEBIAN})
    go(TOOLKIT, host, ONLY)
    go(KUBE, host, {})
    text = host.text(DROP_IN)
    go(TOOLKIT, host, None)
    assert host.text(DROP_IN) == text
    second_pass_is_quiet(KUBE, host, {})


# -- where CNI's plugins are


@pytest.mark.parametrize("version", VERSIONS)
def test_plugins_are_looked_for_where_they_are(version: str) -> None:
    host = host_with(version, {CONFIG: DEBIAN})
    go(KUBE, host, {})
    assert '"/opt/cni/bin"' in (host.text(DROP_IN) or "")
    cni = host.cri()["cni"]
    assert (cni["bin_dir"] or cni["bin_dirs"]) in ("/opt/cni/bin", ["/opt/cni/bin"])
    host.put(DEBIAN_CNI, "")  # what has gone over stays: the cluster's network has put its plugins there
    second_pass_is_quiet(KUBE, host, {})


def test_plugins_in_both_places_are_the_operators_to_decide() -> None:
    host = host_with("1.7.24", {CONFIG: DEBIAN}, cni=(CNI, DEBIAN_CNI))
    done = go(KUBE, host, {})
    assert host.cri()["cni"]["bin_dir"] == "/usr/lib/cni"
    assert "has containerd look for CNI plugins in /usr/lib/cni alone" in " ".join(done.notes)
    nowhere = host_with("1.7.24", {CONFIG: DEBIAN}, cni=())
    go(KUBE, nowhere, {})
    assert nowhere.cri()["cni"]["bin_dir"] == "/usr/lib/cni"


@pytest.mark.parametrize("spelled", ["/usr/lib/cni", r"/usr\u002flib/cni", r"/usr/lib\U0000002Fcni"])
def test_a_list_of_folders_gets_one_more(spelled: str) -> None:
    text = f'version = 3\n{IMPORTS}[plugins."{NEW}".cni]\nbin_dirs = ["{spelled}"]\n'
    host = host_with("2.1.9", {CONFIG: text})
    go(KUBE, host, {})
    assert host.cri()["cni"]["bin_dirs"] == ["/usr/lib/cni", "/opt/cni/bin"]
    second_pass_is_quiet(KUBE, host, {})


# -- what is refused, with nothing written


A_TOML = "/etc/containerd/a.toml"
AROUND = {
    "config.toml": f'version = 2\nimports = ["{CONFIG}"]\n',
    "config.toml by a link's name": 'version = 2\nimports = ["config.toml"]\n',
    "ours": f"version = 2\n{IMPORTS}",
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("text", AROUND.values(), ids=AROUND)
def test_a_file_by_which_ours_is_read_a_second_time_is_refused(version: str, text: str) -> None:
    """What containerd makes of its files without ours could not be told: ours would be made of what it says itself."""
    for config in (f'version = 2\nimports = ["{A_TOML}"]\n', f'version = 2\nimports = ["{A_TOML}", {IMPORTS[11:]}'):
        host = host_with(version, {CONFIG: config, A_TOML: text})
        before = etc(host)
        for unit, settings in BOTH.values():
            said = failure(go(unit, host, settings))
            assert f"{A_TOML} imports {CONFIG} or /etc/containerd/conf.d itself: take that out of its imports" in said
        assert (etc(host), host.restarts) == (before, [])


@pytest.mark.parametrize("version", VERSIONS)
def test_an_import_that_matches_config_toml_itself_is_no_second_reading(version: str) -> None:
    host = host_with(version, {CONFIG: 'version = 2\nimports = ["/etc/containerd/*.toml"]\n'})
    done = go(KUBE, host, {})
    assert (done.state, done.failure) == ("converged", None)
    assert "SystemdCgroup = true" in (host.text("/etc/containerd/99-zz-bcd.toml") or "")
    assert is_for_kube(host)
    second_pass_is_quiet(KUBE, host, {})


def test_an_import_that_is_not_there_and_ends_the_reading_before_ours_is_named() -> None:
    config = f'version = 2\nimports = ["{A_TOML}"]\n'
    host = host_with("2.1.9", {CONFIG: config})
    said = failure(go(KUBE, host, {}))
    assert f"{CONFIG} imports {A_TOML} before it, which is not there" in said
    assert said.endswith("take it out of imports")
    assert etc(host) == {CONFIG: (config, 0o644)}
    behind = host_with("2.1.9", {CONFIG: config.replace("[", f"[{IMPORTS[11:-2]}, ")})
    assert go(KUBE, behind, {}).state == "converged"
    assert is_for_kube(behind)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\ufeffversion = 2\n", f"{CONFIG} line 1: it begins with a byte order mark (U+FEFF)"),
        (
            DOCKERS,
            f'{CONFIG} line 3 turns containerd\'s CRI plugin off, which the kubelet needs (disabled_plugins = ["cri"])',
        ),
        (f'version = 2\ndisabled_plugins = [\n  "{OLD}",\n]\n', f"{CONFIG} line 2 turns containerd's CRI plugin off"),
        (f'version = 2\n{IMPORTS}disabled_plugins = ["{NEW}"]\n', f"{CONFIG} line 3 turns"),
        ('root = "/srv/containerd"\n', f"{CONFIG} has settings and no version"),
        ("[plugins.cri]\n", f"{CONFIG} has settings and no version"),
        ("version = 1\n[plugins.cri]\n", f"{CONFIG} is of version 1, which no drop-in can extend"),
        ("version = 2\na = = 1\n", f"{CONFIG} line 2: "),
        (
            'version = 2\n[grpc]\naddress = "/srv/c.sock"\n',
            "containerd listens at /srv/c.sock, and",
        ),
    ],
)
def test_what_a_kubelet_cannot_use_is_refused(version: str, text: str, said: str) -> None:
    host = host_with(version, {CONFIG: text})
    seen = {path: file for path, file in host.files.items() if path.startswith("/etc")}
    assert said in failure(go(KUBE, host, {}))
    assert {path: file for path, file in host.files.items() if path.startswith("/etc")} == seen
    assert host.restarts == []


def test_dockers_file_without_that_line_is_a_first_one() -> None:
    host = host_with("1.7.27", {CONFIG: DOCKERS.replace('disabled_plugins = ["cri"]\n', "")})
    assert go(KUBE, host, {}).state == "converged"
    assert is_for_kube(host)


def test_a_drop_in_that_turns_the_plugin_off_is_named() -> None:
    off = "/etc/containerd/conf.d/10-off.toml"
    host = host_with("2.1.9", {CONFIG: "version = 2\n" + IMPORTS, off: f'version = 2\ndisabled_plugins = ["{OLD}"]\n'})
    assert f"{off} line 2 turns containerd's CRI plugin off" in failure(go(KUBE, host, {}))


@pytest.mark.parametrize("versions", [(2, 3), (3, 2)])
def test_files_of_two_versions_are_refused_before_containerd_2_3(versions: tuple[int, int]) -> None:
    def files(version: int) -> str:
        text = f"version = {version}\n{IMPORTS if version == versions[0] else ''}" + RUNC + NVIDIA
        return text if version == 2 else text.replace(OLD, NEW)

    late = "/etc/containerd/conf.d/10-site.toml"
    given = {CONFIG: files(versions[0]), late: files(versions[1])}
    host = host_with("2.1.9", given)
    said = failure(go(KUBE, host, {}))
    assert f"{late} is of version {versions[1]} and {CONFIG} of version {versions[0]}" in said
    assert {path: host.text(path) for path in given} == given
    newer = host_with("2.3.0", given)
    assert go(KUBE, newer, {}).state == "converged"
    assert is_for_kube(newer)


def test_a_key_of_someone_else_that_would_change_is_refused_with_nothing_written() -> None:
    late = "/etc/containerd/conf.d/zz.toml"
    for files in (
        {CONFIG: "version = 2\n" + IMPORTS, late: "version = 2\n" + RUNC},
        {CONFIG: FOREIGN.replace(IMPORTS, ""), "/etc/containerd/conf.d/old.toml": "version = 2\n" + NVIDIA},
    ):
        host = host_with("1.7.24", files)
        failure(go(KUBE, host, {}))
        assert {path: host.text(path) for path in files} == files
        assert (host.text(DROP_IN), host.text(BEFORE), host.restarts) == (None, None, [])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("config", [{}, {CONFIG: "# all of it is commented\n"}, {CONFIG: "version = 2\n"}])
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('root = "/srv/containerd"\n', "root"),  # with it every image and container would be gone
        ("oom_score = -500\n", "oom_score"),  # containerd's dump has none without it, here
    ],
)
def test_a_file_that_nobody_imports_changes_nothing_by_the_import(
    version: str, config: dict[str, str], text: str, names: str
) -> None:
    site = "/etc/containerd/conf.d/50-site.toml"
    for unit, settings in ((KUBE, {}), (TOOLKIT, {**ONLY, "cdi": False})):
        host = host_with(version, {**config, site: f"version = 2\n{text}"})
        seen = etc(host)
        said = failure(go(unit, host, settings))
        assert f"with {site}, which nothing imports yet, would change {names} of containerd's configuration" in said
        assert (etc(host), host.restarts) == (seen, [])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_runtime_that_has_lost_its_import_comes_back_and_that_is_said(version: str) -> None:
    bare = FOREIGN.replace(IMPORTS, "").replace('  default_runtime_name = "nvidia"\n', "")
    table = bare[bare.index("[plugins.") :]
    host = host_with(version, {CONFIG: bare.replace(NVIDIA, ""), CTK: f"version = 2\n{table}"})
    done = go(KUBE, host, {})
    assert (done.state, is_for_kube(host)) == ("converged", True)
    assert "nvidia" in host.cri()["containerd"]["runtimes"]
    assert f"import /etc/containerd/conf.d/*.toml in {CONFIG}, which brings {CTK} along" in lines(done)
    second_pass_is_quiet(KUBE, host, {})


# -- a daemon that runs, and answers


def test_one_that_does_not_run_is_started_and_enabled() -> None:
    def stopped() -> ContainerHost:
        host = host_with("1.7.24", {CONFIG: DEBIAN})
        host.running.discard("containerd")
        host.enabled["containerd"] = "disabled"
        return host

    done = check_is_truthful(KUBE, stopped, {})
    assert done.state == "converged"
    host = stopped()
    go(KUBE, host, {})
    assert (host.running, host.enabled["containerd"], host.restarts) == ({"containerd"}, "enabled", ["containerd"])
    host.running.discard("containerd")
    assert lines(go(KUBE, host, {})) == ["start containerd"]
    check_is_truthful(KUBE, _stopped_later, {})
    a_kill_loses_nothing(KUBE, stopped, {}, lambda host: (etc(host), of(host).running, of(host).enabled))


def _stopped_later() -> ContainerHost:
    host = host_with("1.7.24", {CONFIG: DEBIAN})
    go(KUBE, host, {})
    host.running.discard("containerd")
    host.calls.clear()
    return host


def test_one_without_its_plugin_is_named_and_is_not_our_doing() -> None:
    both = f'[plugins."{OLD}".registry.mirrors."docker.io"]\nendpoint = ["https://mirror.example"]\n'
    host = host_with("1.7.24", {CONFIG: FOREIGN + both})
    assert host.silent == "mute"  # containerd loads no CRI plugin with both kinds of mirrors
    done = go(KUBE, host, {})
    said = failure(done, "StepFailed", retryable=True)
    assert "containerd runs and its CRI does not answer" in said
    assert "unknown service runtime.v1.RuntimeService" in said
    assert go(KUBE, host, {}).changed is False
    host.put(CONFIG, FOREIGN)
    assert go(KUBE, host, {}).state == "converged"


def test_a_masked_one_and_one_without_a_unit_are_named() -> None:
    host = host_with("1.7.24", {CONFIG: DEBIAN})
    go(KUBE, host, {})
    host.enabled["containerd"] = "masked"
    assert "is masked: unmask it" in failure(go(KUBE, host, {}), "StepFailed")
    del host.files["/usr/lib/systemd/system/containerd.service"]
    assert "there is no containerd.service" in failure(go(KUBE, host, {}), "StepFailed")


def test_one_that_needs_a_moment_is_waited_for() -> None:
    host = host_with("1.7.24", {CONFIG: DEBIAN})
    calls: list[int] = []
    serve = host.servers[SOCKET]

    def slow(method: str, message: bytes) -> bytes:
        calls.append(1)
        if len(calls) in (2, 3, 4):
            from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import StepFailed

            raise StepFailed(f"{SOCKET} gives no answer to {method}: gRPC status 14 (server is not initialized yet): x")
        return serve(method, message)

    host.servers[SOCKET] = slow
    assert go(KUBE, host, {}).state == "converged"
    assert len(calls) > 4


# -- a daemon that does not come up with our files


UNITS = pytest.mark.parametrize("name", ["kube", "toolkit"])
HOW = pytest.mark.parametrize("how", ["dies", "mute"])


def broken(how: str, layout: str = "foreign", version: str = "1.7.24") -> ContainerHost:
    host = host_with(version, LAYOUTS[layout])
    host.breaks = lambda machine: how if machine.text(DROP_IN) else ""
    if how == "dies":
        host.journal = ["time=x level=info msg=starting", 'time=x level=fatal msg="no such device"']
    return host


@UNITS
@HOW
@pytest.mark.parametrize("layout", ["none", "debian", "foreign"])
def test_its_former_files_come_back(name: str, how: str, layout: str) -> None:
    unit, settings = BOTH[name]
    host = broken(how, layout)
    before = etc(host)
    done = go(unit, host, settings)
    said = failure(done, "StepFailed")
    assert "containerd did not answer with the configuration" in said
    assert ("no such device" if how == "dies" else "unknown service runtime.v1.RuntimeService") in said
    assert etc(host) == before
    assert (host.running, host.silent, host.restarts) == ({"containerd"}, "", ["containerd"] * 2)
    again = go(unit, host, settings)  # this boot does not try it again
    assert (again.changed, host.restarts) == (False, ["containerd"] * 2)
    assert failure(again, "StepFailed") == said
    host.put(CONFIG, FOREIGN.replace("-500", "-600"))
    go(unit, host, settings)  # what somebody corrects is tried
    assert host.restarts == ["containerd"] * 4
    host.breaks = lambda _machine: ""
    host.reboot()
    assert go(unit, host, settings).state == "converged"
    assert host.text(BEFORE) is None
    second_pass_is_quiet(unit, host, settings)


class Brief(ContainerHost):
    """A containerd that answers, and dies two seconds after its start with our drop-in; `again`: is started anew."""

    again = False

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.text(DROP_IN) and seconds >= 2:
            self.running.discard("containerd")
            self.state["containerd"] = "activating" if self.again else "failed"
        elif self.again:  # systemd's
            self.running.add("containerd")


@UNITS
@pytest.mark.parametrize("again", [True, False])
def test_one_that_answers_and_dies_a_moment_later_gets_its_former_files_back(name: str, again: bool) -> None:
    unit, settings = BOTH[name]
    host = Brief(Machine.from_products(["H100-80GB"]), {"containerd": "1.7.24"}, LAYOUTS["foreign"])
    host.again = again
    before = etc(host)
    said = failure(go(unit, host, settings), "StepFailed")
    assert "containerd did not answer with the configuration" in said
    assert f"its service is {host.state['containerd']}" in said
    assert (etc(host), host.running, host.restarts) == (before, {"containerd"}, ["containerd"] * 2)
    assert host.now < 60
    assert go(unit, host, settings).changed is False


@pytest.mark.exhaustive
@UNITS
@HOW
def test_a_kill_anywhere_in_between_ends_with_the_former_files_too(name: str, how: str) -> None:
    unit, settings = BOTH[name]

    def shown(host: Any) -> object:
        return etc(host), host.running, host.silent

    assert a_kill_loses_nothing(unit, lambda: broken(how), settings, shown) > 6


@UNITS
def test_a_kill_of_one_unit_is_seen_through_by_the_other(name: str) -> None:
    other = "toolkit" if name == "kube" else "kube"
    for at in range(1, 30):
        host = broken("dies", "debian")
        before = etc(host)
        host.kill_at = at
        try:
            go(BOTH[name][0], host, BOTH[name][1])
        except Killed:
            host.kill_at = 0
        else:
            assert at > 6
            break
        go(BOTH[other][0], host, BOTH[other][1])
        assert (etc(host), host.running, host.silent) == (before, {"containerd"}, ""), at
        host.breaks = lambda _machine: ""
        host.reboot()
        for one in (name, other):
            assert go(BOTH[one][0], host, BOTH[one][1]).state == "converged", at
        assert (is_for_kube(host), is_for_toolkit(host), host.text(BEFORE)) == (True, True, None)


def test_what_another_unit_refused_is_no_hindrance() -> None:
    host = host_with("1.7.24", {CONFIG: FOREIGN})
    host.breaks = lambda machine: "mute" if "container-toolkit" in (machine.text(DROP_IN) or "") else ""
    nvidia_missing = FOREIGN.replace(NVIDIA, "").replace('default_runtime_name = "nvidia"', "")
    host.put(CONFIG, nvidia_missing)
    failure(go(TOOLKIT, host, ONLY), "StepFailed")
    assert go(KUBE, host, {}).state == "converged"
    assert is_for_kube(host)
    failure(go(TOOLKIT, host, ONLY), "StepFailed")
    assert is_for_kube(host)
    restarts = list(host.restarts)
    second_pass_is_quiet(KUBE, host, {})
    assert go(TOOLKIT, host, ONLY).changed is False
    assert host.restarts == restarts


@pytest.mark.parametrize("change", ["restart containerd", "remove /etc/containerd", f"write {BEFORE}"])
def test_a_unit_that_goes_sees_its_change_through(change: str) -> None:
    before = etc(broken("dies"))
    host = killed_before(change, TOOLKIT, lambda: broken("dies"), ONLY)
    go(TOOLKIT, host, None)
    assert (etc(host), host.running, host.silent) == (before, {"containerd"}, "")


def test_one_that_was_stopped_meanwhile_says_nothing_of_the_files() -> None:
    host = killed_before(f"remove {BEFORE}", TOOLKIT, lambda: host_with("1.7.24", {CONFIG: DEBIAN}), ONLY)
    host.running.discard("containerd")
    assert go(TOOLKIT, host, ONLY).failure is None
    assert host.text(DROP_IN) is not None
    assert host.text(BEFORE) is not None
    assert (go(KUBE, host, {}).state, host.text(BEFORE)) == ("converged", None)


def test_the_former_files_are_for_root_alone_and_as_they_were() -> None:
    def machine() -> ContainerHost:
        host = broken("dies")
        text = FOREIGN.replace(IMPORTS, "") + '# an "odd" \udcff byte\n'
        host.files[CONFIG] = host.files[CONFIG]._replace(text=text, mode=0o640)
        return host

    host = killed_before("restart containerd", KUBE, machine, {})
    assert host.files[CONFIG] != machine().files[CONFIG]
    assert host.files[BEFORE].mode == 0o600
    go(KUBE, host, {})
    assert host.files[CONFIG] == machine().files[CONFIG]


def test_a_damaged_record_is_named() -> None:
    host = host_with("1.7.24", {CONFIG: DEBIAN, BEFORE: "{}"})
    assert f"{BEFORE} is not a record" in failure(go(KUBE, host, {}), "StepFailed")


def test_a_record_that_this_account_may_not_read_is_known_when_root_looks() -> None:
    host = host_with("1.7.24", {CONFIG: DEBIAN, BEFORE: "{}"})
    host.user = 1000
    host.unreadable |= {BEFORE, SOCKET}
    planned = go(TOOLKIT, host, ONLY, check=True)
    assert planned.failure is None
    assert [step.action for step in planned.steps if "containerd" in step.action] == [
        "containerd: known after it is seen as root"
    ]


def test_the_call_is_one_that_any_cri_answers() -> None:
    host = host_with("1.7.24", {CONFIG: DEBIAN})
    seen: list[str] = []

    def serve(method: str, _message: bytes) -> bytes:
        seen.append(method)
        return b""

    host.servers[SOCKET] = serve
    go(KUBE, host, {})
    assert {*seen} == {VERSION}
