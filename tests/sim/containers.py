# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Container runtimes of a simulated host: containerd, dockerd, podman, as far as their configuration is asked about.

containerd 1.x takes the whole table of a plugin from the last file that has one, 2.x merges key by key. As a service it
does not start with files that it cannot read, nor, where a test asks for that, with one that holds the text in
/etc/sim/containerd-refuses.
"""

from __future__ import annotations

import copy
import glob
import json
import re
from typing import Any

from . import units
from .machine import at, load, put, read

Answer = tuple[int, str, str]
Table = dict[str, Any]
CONFIG = "/etc/containerd/config.toml"
REFUSES = "/etc/sim/containerd-refuses"
OLD_CRI, NEW_CRI = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"
PROGRAMS = {"containerd": "containerd", "docker": "dockerd", "podman": "podman"}
RUNC: Table = {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "", "SystemdCgroup": False}}
# A host's own configuration, with settings that nobody may lose.
FIRST = """version = 2

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "registry.example/pause:3.9"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "/etc/containerd/certs.d"
"""
UNIT = "[Unit]\nDescription={0}\n\n[Service]\nExecStart=/usr/bin/{1}\n\n[Install]\nWantedBy=multi-user.target\n"


def build(root: str) -> tuple[str, ...]:
    """Give the machine its runtimes' files and services; the names of their programs."""
    what = load(root)
    for name, version in what.runtimes:
        if name == "podman":
            continue
        units.unit_file(root, f"{name}.service", UNIT.format(name, PROGRAMS[name]), started=True)
        if name == "containerd":
            text = FIRST if version.startswith("1.") else FIRST.replace(OLD_CRI, NEW_CRI).replace("= 2\n", "= 3\n", 1)
            put(root, CONFIG, text)
    return tuple(PROGRAMS[name] for name, _version in what.runtimes)


def version_of(root: str, name: str) -> str:
    """The version of a runtime: the machine was built with it, or a package brought it."""
    from .packages import installed

    known = dict(load(root).runtimes)
    package = installed(root).get(name) or installed(root).get(f"{name}.io") or {"version": ""}
    return known.get(name) or str(package["version"]).partition("-")[0]


def containerd(root: str, argv: list[str]) -> Answer:
    """containerd [-c FILE] config dump, --version; as a service it starts."""
    version = version_of(root, "containerd")
    if argv[:1] in (["--version"], ["-v"]):
        return 0, f"containerd github.com/containerd/containerd {version} 0000000\n", ""
    where = argv[argv.index("-c") + 1] if "-c" in argv else CONFIG
    try:
        files = _files(root, where)
        modern = not version.startswith("1.")
        dump = _merged(files, modern)
    except ValueError as fault:
        return 1, "", f"containerd: failed to load TOML from {where}: {fault}\n"
    refused = read(root, REFUSES)
    if "config" not in argv and refused and any(refused.strip() in (read(root, path) or "") for path, _table in files):
        return 1, "", "containerd: it was asked not to start with these files\n"
    dump["imports"] = [path for path, _table in files]
    return 0, _rendered(dump) if "config" in argv else "", ""


def _files(root: str, first: str) -> list[tuple[str, Table]]:
    """The file and all that it imports, in the order in which they are read."""
    found: list[tuple[str, Table]] = []
    queue = [first]
    while queue:
        path = queue.pop(0)
        text = read(root, path)
        if text is None or any(path == one for one, _table in found):
            continue
        table = parse(text)
        found.append((path, table))
        for pattern in table.get("imports", ()):
            whole = pattern if pattern.startswith("/") else f"{path.rpartition('/')[0]}/{pattern}"
            hits = sorted(one[len(root.rstrip("/")) :] for one in glob.glob(at(root, whole)))
            queue += hits if "*" in whole else [whole]
    return found


def _merged(files: list[tuple[str, Table]], modern: bool) -> Table:
    name = NEW_CRI if modern else OLD_CRI
    cri: Table = {}
    version = 3 if modern else 2
    disabled: list[str] = []
    for path, table in files:
        if table.get("version", version) > version:
            raise ValueError(f"{path}: expected containerd config version `{version}`, got `{table['version']}`")
        disabled += table.get("disabled_plugins", [])
        plugins = table.get("plugins", {})
        mine = plugins.get(name, plugins.get(OLD_CRI) if modern else None)
        if mine is not None:
            cri = _laid(cri, mine) if modern else copy.deepcopy(mine)
    defaults: Table = {
        "cdi_spec_dirs": ["/etc/cdi", "/var/run/cdi"],
        "enable_cdi": modern,
        "registry": {"config_path": ""},
        "containerd": {"default_runtime_name": "runc", "runtimes": {"runc": RUNC}},
    }
    whole = _laid(defaults, cri)
    runtimes = cri.get("containerd", {}).get("runtimes")
    if runtimes:  # those by default are there only as long as no file names any
        whole["containerd"]["runtimes"] = {
            one: _laid({"runtime_type": "", "options": {}}, table) for one, table in runtimes.items()
        }
    return {"version": version, "disabled_plugins": disabled, "plugins": {name: whole}}


def _laid(below: Table, above: Table) -> Table:
    found = copy.deepcopy(below)
    for key, value in above.items():
        if isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = _laid(found[key], value)
        else:
            found[key] = copy.deepcopy(value)
    return found


def dockerd(root: str, argv: list[str]) -> Answer:
    """dockerd --validate --config-file=FILE, --version; as a service it starts."""
    if "--version" in argv:
        return 0, f"Docker version {version_of(root, 'docker')}, build 0000000\n", ""
    where = next((word.partition("=")[2] for word in argv if word.startswith("--config-file=")), "")
    if "--validate" in argv:
        try:
            json.loads(read(root, where) or "{}")
        except ValueError as fault:
            return 1, "", f"unable to configure the Docker daemon with file {where}: {fault}\n"
        return 0, "", "configuration OK\n"
    return 0, "", ""


def podman(root: str, argv: list[str]) -> Answer:
    """podman --version."""
    return 0, f"podman version {version_of(root, 'podman')}\n", ""


# -- TOML, as much of it as these files have


KEY = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*""")


def _path(text: str) -> list[str]:
    keys, rest = [], text
    while rest:
        found = KEY.match(rest)
        if found is None:
            raise ValueError(f"bad key {text!r}")
        keys.append(next(part for part in found.groups() if part is not None))
        rest = rest[found.end() :]
        if rest and not rest.startswith("."):
            raise ValueError(f"bad key {text!r}")
        rest = rest[1:]
    return keys


def parse(text: str) -> Table:
    """Tables, and keys with strings, numbers, booleans and arrays of them."""
    top: Table = {}
    here = top
    lines = iter(text.splitlines())
    for raw in lines:
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            here = top
            for key in _path(line[1 : line.rindex("]")]):
                here = here.setdefault(key, {})
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"expected key = value, got {line!r}")
        while value.count("[") > value.count("]"):
            value += next(lines).strip()
        *above, last = _path(key)
        table = here
        for name in above:
            table = table.setdefault(name, {})
        table[last] = _value(value.strip())
    return top


def _value(text: str) -> Any:
    if text.startswith("'"):
        return text[1 : text.rindex("'")]
    if text.startswith("["):
        inner = re.sub(r",\s*\]", "]", text[: text.rindex("]") + 1])
        return [_value(part) for part in re.findall(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^,\[\]\s]+", inner)]
    try:
        return json.loads(re.sub(r"\s+#.*$", "", text) if not text.startswith('"') else text[: text.rindex('"') + 1])
    except ValueError:
        raise ValueError(f"bad value {text!r}") from None


def _rendered(table: Table, above: tuple[str, ...] = ()) -> str:
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    text = "".join(f"{_key(key)} = {json.dumps(value)}\n" for key, value in plain.items())
    if above:
        text = f"\n[{'.'.join(_key(key) for key in above)}]\n{text}"
    return text + "".join(_rendered(value, (*above, key)) for key, value in table.items() if isinstance(value, dict))


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else json.dumps(text)
