# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host in memory with GPUs and container runtimes.

containerd reads its files as 1.6, 1.7 and 2.1 were seen to: 1.x takes a plugin's whole table from the last file that
has one, and decodes it over the defaults, where a map such as `runtimes` loses its defaults as soon as it is written
down; 2.x merges the files key by key first.
"""

from __future__ import annotations

import copy
import importlib.util
import json
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.errors import Refused, StepFailed
from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer, Ask
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan import toml
from ansible_collections.bettercompute.bcd.plugins.module_utils.plan.toml_text import render
from tests.gpu.fake import GpuHost, nvidia_ctk
from tests.gpu.fake_systemd import systemctl as gpu_systemctl
from tests.gpu.model import Machine
from tests.unit.fake_host import FakeHost
from tests.unit.shown_units import shown_units

Table = dict[str, Any]
TOMLLIB: Any = importlib.import_module("tomllib") if importlib.util.find_spec("tomllib") else None  # since 3.11
CONFIG = "/etc/containerd/config.toml"
DROP_IN = "/etc/containerd/conf.d/99-zz-bcd.toml"
BEFORE = "/var/lib/bcd-hostconfig/containerd-before.json"
SOCKET, VERSION = "/run/containerd/containerd.sock", "/runtime.v1.RuntimeService/Version"
DAEMON = "/etc/docker/daemon.json"
RUNTIME = "/etc/nvidia-container-runtime/config.toml"
SPEC = "/etc/cdi/nvidia.json"
STAMP = "/var/lib/bcd-hostconfig/cdi-nvidia.stamp"
REFRESH = "/usr/lib/systemd/system/nvidia-cdi-refresh.service"
REFRESH_ENV = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
PRIVATE = "/private"  # where a question's files lie

OLD, NEW = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
IMAGES = "io.containerd.cri.v1.images"
RUNC_OPTIONS: Table = {"BinaryName": "", "Root": "", "SystemdCgroup": False}
RUNTIME_17: Table = {"privileged_without_host_devices": False, "runtime_type": "", "sandbox_mode": "", "options": {}}
RUNC_17: Table = {**RUNTIME_17, "runtime_type": "io.containerd.runc.v2", "sandbox_mode": "podsandbox"}
CRI_16: Table = {
    "sandbox_image": "registry.k8s.io/pause:3.6",
    "registry": {"config_path": "", "mirrors": {}},
    "containerd": {"default_runtime_name": "runc", "runtimes": {"runc": {**RUNC_17, "options": RUNC_OPTIONS}}},
}
CRI_17: Table = {"cdi_spec_dirs": ["/etc/cdi", "/var/run/cdi"], "enable_cdi": False, **CRI_16}
CRI_21: Table = {
    "cdi_spec_dirs": ["/etc/cdi", "/var/run/cdi"],
    "enable_cdi": True,
    "cni": {"bin_dir": "", "bin_dirs": ["/usr/lib/cni", "/opt/cni/bin"]},
    "containerd": {
        "default_runtime_name": "runc",
        "runtimes": {"runc": {"runtime_type": "io.containerd.runc.v2", "options": RUNC_OPTIONS}},
    },
}
IMAGES_21: Table = {"pinned_images": {"sandbox": "registry.k8s.io/pause:3.10"}, "registry": {"config_path": ""}}
OPT: Table = {"path": "/opt/containerd"}
DEBIAN = f"""version = 2

[plugins]
  [plugins."{OLD}"]
    [plugins."{OLD}".cni]
      bin_dir = "/usr/lib/cni"
"""


class ContainerHost(GpuHost):
    """`runtimes` maps containerd, docker, crio and podman to their versions; those that are named are installed.

    `running` are the services that run, `restarts` what was restarted, in order; `state` and `enabled` are systemd's
    words of those that do not run, and of the next boot. `breaks` says what keeps containerd from serving its CRI with
    the files as they are at its start: "dies", "mute" (it runs without the plugin), "" for nothing; `silent` is what
    did at the last one. `journal` is what containerd logs.
    """

    def __init__(
        self,
        machine: Machine,
        runtimes: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        toolkit: bool = True,
    ) -> None:
        super().__init__(machine, files)
        self.links["/var/run"] = "/run"
        self.versions = dict(runtimes or {})
        self.running = set(self.versions) - {"podman"}
        self.restarts: list[str] = []
        self.state: dict[str, str] = {}
        self.enabled: dict[str, str] = {}
        self.breaks: Callable[[ContainerHost], str] = lambda _host: ""
        self.silent = ""
        self.journal: list[str] = []
        self.put("/etc/os-release", 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n')
        self.put("/proc/sys/kernel/arch", "x86_64\n")
        self.offered = "1.18.1-1"  # of the toolkit, in apt's index
        self.programs.update({"stat": stat, "systemctl": systemctl, "journalctl": journalctl, **APT})
        programs = {"containerd": containerd, "docker": dockerd, "crio": silent, "podman": silent}
        for name in self.versions:
            self.programs["dockerd" if name == "docker" else name] = programs[name]
            if name != "podman":
                self.put(f"/usr/lib/systemd/system/{name}.service", "[Service]\n")
        if "containerd" in self.versions:
            self.servers[SOCKET] = self.serve
            self.silent = served(self)
        del self.programs["nvidia-ctk"]
        if toolkit:
            self.unpack()

    def unpack(self, refresh: bool = False) -> None:
        """Install the toolkit, with nvidia-cdi-refresh or from before it."""
        self.programs["nvidia-ctk"] = nvidia_ctk
        self.put("/usr/bin/nvidia-ctk", "")
        if self.text(RUNTIME) is None:
            self.put(RUNTIME, PACKAGED)
        if refresh:
            self.put(REFRESH, "[Service]\nExecStart=/usr/bin/nvidia-ctk cdi generate\n")
            self.put(REFRESH_ENV, ENVIRONMENT)

    def answer(self, question: Ask) -> Answer:
        """A question with its files at hand, and gone after it."""
        argv = question.argv
        for name, text in question.files:
            self.put(f"{PRIVATE}/{name}", text)
            argv = tuple(word.replace(f"{{{name}}}", f"{PRIVATE}/{name}") for word in argv)
        try:
            return self.ask(argv)
        finally:
            for name, _text in question.files:
                del self.files[f"{PRIVATE}/{name}"]

    def serve(self, method: str, _message: bytes) -> bytes:
        """containerd's socket, with the words of the real one and of the client."""
        if "containerd" not in self.running:
            raise StepFailed(f"{SOCKET} cannot be asked for {method}: Connection refused: see whether its server runs")
        if self.silent:
            service = method[1:].partition("/")[0]
            raise StepFailed(
                f"{SOCKET} gives no answer to {method}: gRPC status 12 (unknown service {service}): "
                "see what its server says"
            )
        return b""

    def dump(self) -> Table:
        """What containerd makes of its configuration as it is."""
        return read_toml(containerd(self, ("containerd", "config", "dump")).out, "dump")

    def cri(self) -> Table:
        """The CRI plugin's table of it."""
        plugins: Table = self.dump()["plugins"]
        found: Table = plugins[OLD if self.versions["containerd"].startswith("1.") else NEW]
        return found

    def spec(self) -> Any:
        """The vendor's specification."""
        return json.loads(self.text(SPEC) or "null")


def read_toml(text: str, source: str) -> Table:
    """A file as the standard library reads it, where it does; raises Refused for one that is no TOML."""
    if TOMLLIB is None:
        return toml.parse(text, source)
    try:
        found: Table = TOMLLIB.loads(text)
    except TOMLLIB.TOMLDecodeError as fault:
        raise Refused(f"{source}: {fault}") from None
    return found


def of(host: FakeHost) -> ContainerHost:
    """The host, as what it is."""
    assert isinstance(host, ContainerHost)
    return host


# -- containerd


def containerd(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """containerd [-c FILE] config dump."""
    version = of(host).versions["containerd"]
    if "--version" in argv:
        return Answer(0, f"containerd github.com/containerd/containerd {version} 0123abc\n")
    path = argv[2] if argv[1] == "-c" else CONFIG
    try:
        files = _load(host, path, version) if path != CONFIG or host.text(CONFIG) is not None else []
        return Answer(0, render(_effective(files, version)))
    except (Refused, FileNotFoundError) as fault:
        return Answer(1, "", f"containerd: failed to load TOML: {fault}\n")


def _load(host: FakeHost, path: str, version: str) -> list[Table]:
    """The files in containerd's order, breadth first, globs by name.

    One that is named and missing is a fault, and from 2.0 on the end of the reading.
    """
    loaded: dict[str, Table] = {}
    pending = [path]
    while pending:
        here = pending.pop(0)
        if here in loaded:
            continue
        text = host.text(here)
        if text is None and not version.startswith("1."):
            break
        if text is None:
            raise FileNotFoundError(f"open {here}: no such file or directory")
        loaded[here] = read_toml(text, here)
        for entry in loaded[here].get("imports", ()):
            if "*" in entry:
                folder, _slash, last = entry.rpartition("/")
                ending = last.replace("*", "")
                pending += [f"{folder}/{name}" for name in host.names(folder) if name.endswith(ending)]
            else:
                pending.append(entry if entry.startswith("/") else f"{here.rpartition('/')[0]}/{entry}")
    return list(loaded.values())


def _effective(files: list[Table], version: str) -> Table:
    """Over the defaults; 1.x by whole plugin tables, 2.x key by key, version 2 taken over into version 3.

    From 2.3 on each file is taken over by itself. Before, what all have of version 2 together, and only where none has
    the plugin by its new name.
    """
    modern, each = not version.startswith("1."), version[:3] >= "2.3"
    plugins: Table = {}
    whole: Table = {
        "version": (4 if each else 3) if modern else 2,
        "disabled_plugins": [],
        "root": "/var/lib/containerd",
    }
    for table in files:
        for name, given in table.get("plugins", {}).items():
            for below, part in _migrated(name, given) if each else [(name, given)]:
                plugins[below] = _over(plugins.get(below, {}), part) if modern else copy.deepcopy(part)
        whole["disabled_plugins"] = [*whole["disabled_plugins"], *table.get("disabled_plugins", [])]
        whole.update({key: value for key, value in table.items() if key in ("root", "state", "oom_score")})
    if modern and OLD in plugins:
        taken = {name: part for name, part in _migrated(OLD, plugins.pop(OLD)) if name not in plugins}
        plugins.update(taken)
    cri = {"1.6": CRI_16, "1.7": CRI_17}.get(version[:3])
    defaults = {NEW: CRI_21, IMAGES: IMAGES_21} if cri is None else {OLD: cri}
    found = {name: _decoded(table, plugins.get(name, {})) for name, table in {**defaults, "opt": OPT}.items()}
    cni = found.get(NEW, {}).get("cni", {})
    if cni.get("bin_dir") and "bin_dirs" not in plugins[NEW]["cni"]:
        cni.update(bin_dir="", bin_dirs=[cni["bin_dir"]])
    return {**whole, "plugins": {**{name: table for name, table in plugins.items() if name not in found}, **found}}


def _migrated(name: str, given: Table) -> list[tuple[str, Table]]:
    """A plugin's table of version 2 in the names of version 3."""
    if name != OLD:
        return [(name, given)]
    images: Table = {}
    if "sandbox_image" in given:
        images["pinned_images"] = {"sandbox": given["sandbox_image"]}
    if "registry" in given:
        images["registry"] = given["registry"]
    rest = {key: value for key, value in given.items() if key not in ("sandbox_image", "registry")}
    return [(IMAGES, images), (NEW, rest)]


def _over(table: Table, over: Table) -> Table:
    found = copy.deepcopy(table)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = _over(found[key], value) if both else copy.deepcopy(value)
    return found


def _decoded(default: Table, given: Table, path: tuple[str, ...] = ()) -> Table:
    """A table over the defaults of its structure. A map that is given has only what is given, each over nothing."""
    found = copy.deepcopy(default)
    known = {"cdi_spec_dirs", "enable_cdi"} - (found.keys() if not path else set())
    for key, value in given.items():
        if not path and key in known and "sandbox_image" in default:
            continue  # an unknown key of a structure is passed over
        below = (*path, key)
        if below == ("containerd", "runtimes") and "sandbox_image" in CRI_17:
            found[key] = {name: _runtime(default[key], name, part) for name, part in value.items()}
        elif below == ("registry", "mirrors"):
            found[key] = copy.deepcopy(value)
        elif isinstance(value, dict):
            found[key] = _decoded(found.get(key, {}), value, below)
        else:
            found[key] = copy.deepcopy(value)
    if path == ("containerd",) and "sandbox_mode" not in str(default):
        runtimes = {**default.get("runtimes", {}), **found.get("runtimes", {})}  # 2.x has the defaults merged in before
        found["runtimes"] = {name: _over(default["runtimes"].get(name, {}), part) for name, part in runtimes.items()}
    return found


def _runtime(defaults: Table, name: str, part: Table) -> Table:
    bare = RUNTIME_17 if "sandbox_mode" in defaults["runc"] else {}
    return {**copy.deepcopy(bare), **copy.deepcopy(part)}


# -- the others


def dockerd(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """dockerd --version, dockerd --validate --config-file=FILE."""
    if "--version" in argv:
        return Answer(0, f"Docker version {of(host).versions['docker']}, build 0123abc\n")
    path = next(word.partition("=")[2] for word in argv if word.startswith("--config-file="))
    known = {"features", "runtimes", "log-driver", "exec-opts", "cdi-spec-dirs", "data-root"}
    unknown = sorted(set(json.loads(host.text(path) or "{}")) - known)
    if unknown:
        said = f"the following directives don't match any configuration option: {', '.join(unknown)}"
        return Answer(1, "", f"unable to configure the Docker daemon with file {path}: {said}\n")
    return Answer(0, "", "configuration OK\n")


def silent(_host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    """A program that is there."""
    return Answer(0, "")


def stat(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """stat -L --format=%n -- PATH..."""
    paths = argv[argv.index("--") + 1 :]
    there = [path for path in paths if host.exists(path)]
    missing = [f"stat: cannot statx '{path}': No such file or directory\n" for path in paths if path not in there]
    return Answer(1 if missing else 0, "".join(f"{path}\n" for path in there), "".join(missing))


def shown(host: FakeHost, argv: tuple[str, ...], ask: Callable[[FakeHost, tuple[str, ...]], Answer]) -> Answer:
    """`show` of several units, of which `ask` tells the state; unit files that are newer are the GPU host's."""
    stale = ("systemctl", "show", "--property=NeedDaemonReload", "--value")
    return shown_units(
        argv,
        lambda unit: ask(host, ("systemctl", "is-active", unit)).out.strip(),
        lambda unit: gpu_systemctl(host, (*stale, unit)).out == "yes\n",
    )


def systemctl(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """is-active, is-enabled, enable, start and restart of the runtimes."""
    if argv[1] == "show" and "--" in argv:
        return shown(host, argv, systemctl)
    machine = of(host)
    name = argv[-1].partition(".service")[0]
    if name not in ("containerd", "docker", "crio"):
        return gpu_systemctl(host, argv)
    if "is-active" in argv:
        there = name in machine.running
        return Answer(0 if there else 3, f"{'active' if there else machine.state.get(name, 'inactive')}\n")
    if "is-enabled" in argv:
        word = machine.enabled.get(name, "enabled")
        return Answer(0 if word == "enabled" else 1, f"{word}\n")
    if "enable" in argv:
        machine.enabled[name] = "enabled"
        return Answer(0, "")
    machine.restarts.append(name)
    machine.running.add(name)
    if name == "containerd":
        machine.silent = served(machine)
        if machine.silent == "dies":
            machine.running.discard(name)
            machine.state[name] = "failed"
            return Answer(1, "", "Job for containerd.service failed\n")
    return Answer(0, "")


def served(host: ContainerHost) -> str:
    """What keeps a containerd that starts now from serving its CRI.

    As the real one it does not load the plugin where mirrors stand beside the folder for them, or both keys for the
    folders of CNI's plugins.
    """
    said = containerd(host, ("containerd", "config", "dump"))
    if said.rc:
        host.journal.append(f"containerd: {said.err.strip()}")
        return "dies"
    plugins = host.dump()["plugins"]
    registry = plugins.get(IMAGES, plugins.get(OLD, {})).get("registry", {})
    cni = plugins.get(NEW, {}).get("cni", {})
    if {"cri", OLD, NEW} & {*host.dump()["disabled_plugins"]}:
        return "mute"
    if (registry.get("config_path") and registry.get("mirrors")) or (cni.get("bin_dir") and cni.get("bin_dirs")):
        return "mute"
    return host.breaks(host)


def journalctl(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    """What containerd logged."""
    return Answer(0, "".join(f"{line}\n" for line in of(host).journal))


# -- apt


def find(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """find PATH -mmin -N: the path, when it is there."""
    return Answer(0, f"{argv[1]}\n") if argv[1] in host.files else Answer(1, "", "find: no such file\n")


def dpkg_query(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    """The toolkit, when it is installed."""
    there = "nvidia-ctk" in host.programs
    return Answer(0 if there else 1, f"ii |{PACKAGE}|{of(host).offered}\n" if there else "")


def apt_cache(host: FakeHost, _argv: tuple[str, ...]) -> Answer:
    """What the index offers of the toolkit."""
    offered = of(host).offered
    return Answer(0, f" {PACKAGE} | {offered} | https://nvidia.example stable Packages\n" if offered else "")


def apt_get(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """apt-get update, and install, also on paper."""
    if "install" in argv and "-s" in argv:
        return Answer(0, f"Inst {PACKAGE} ({of(host).offered} x [amd64])\n")
    if "install" in argv:
        of(host).unpack(refresh=of(host).offered >= "1.18")
    return Answer(0, "")


PACKAGE = "nvidia-container-toolkit"
APT = {"find": find, "dpkg-query": dpkg_query, "apt-cache": apt_cache, "apt-get": apt_get}
ENVIRONMENT = """# This file can be used to override the configuration of the
#   nvidia-ctk cdi generate
# command.
# NVIDIA_CTK_CDI_OUTPUT_FILE_PATH=/var/run/cdi/nvidia.yaml
"""
PACKAGED = """#accept-nvidia-visible-devices-as-volume-mounts = false
#accept-nvidia-visible-devices-envvar-when-unprivileged = true
disable-require = false
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"
#swarm-resource = "DOCKER_RESOURCE_GPU"

[nvidia-container-cli]
#debug = "/var/log/nvidia-container-toolkit.log"
environment = []
ldconfig = "@/sbin/ldconfig"
load-kmods = true

[nvidia-container-runtime]
log-level = "info"
mode = "auto"
runtimes = ["runc", "crun"]
"""
