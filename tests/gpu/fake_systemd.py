# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemd of a host in memory, as far as services around GPUs concern it: it runs what unit files say."""

from __future__ import annotations

import shlex
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ansible_collections.bettercompute.bcd.plugins.module_utils.core.plan import Answer
from tests.sim.units import sections
from tests.unit.fake_host import FakeHost

from .model import Hang
from .not_played import NotPlayed

if TYPE_CHECKING:
    from .fake import GpuHost

FOLDER = "/etc/systemd/system"
PACKAGED = "/usr/lib/systemd/system"
# Packaged services that hold the GPUs while they run, and the program that does.
CLIENTS = {
    "nvidia-persistenced.service": "nvidia-persistenced",
    "nvidia-dcgm.service": "nv-hostengine",
    "nvidia-fabricmanager.service": "nv-fabricmanager",
}
SERVES = "bcd-mps.service"
CONDITIONS = ("ConditionPathExists", "ConditionPathExistsGlob")


class Services:
    """The manager's memory: which units are active or failed, and the text that it loaded of each."""

    def __init__(self, host: GpuHost) -> None:
        self.host = host
        self.state: dict[str, str] = {}
        self.loaded: dict[str, str] = {}
        for unit, program in CLIENTS.items():
            if program in host.machine.clients:
                self.add(unit, active=True)

    def add(self, unit: str, text: str = "[Service]\nExecStart=/usr/bin/true\n", active: bool = False) -> None:
        """Install a packaged service; one that is active is enabled too."""
        self.host.put(f"{PACKAGED}/{unit}", text)
        self.loaded[unit] = text
        if active:
            self.state[unit] = "active"
            self.host.links[f"{FOLDER}/multi-user.target.wants/{unit}"] = f"{PACKAGED}/{unit}"
            self._client(unit, True)

    def text(self, unit: str) -> str | None:
        """The unit's file."""
        found = self.host.text(f"{FOLDER}/{unit}")
        return self.host.text(f"{PACKAGED}/{unit}") if found is None else found

    def stale(self, unit: str) -> bool:
        """Whether the manager has loaded another text than is on disk."""
        return unit in self.loaded and self.loaded[unit] != self.text(unit)

    def enabled(self, unit: str) -> bool:
        """Whether a target wants it."""
        return any(path.startswith(FOLDER) and path.endswith(f".wants/{unit}") for path in self.host.links)

    def start(self, unit: str) -> Answer:
        """Start it, by what the manager has loaded of its file."""
        text = self.loaded.setdefault(unit, self.text(unit) or "")
        if self.text(unit) is None:
            del self.loaded[unit]
            return Answer(5, "", f"Failed to start {unit}: Unit {unit} not found.\n")
        if self.state.get(unit) == "active":
            return Answer(0, "", "")
        if not self._conditions(sections(text).get("Unit", {})):
            return Answer(0, "", "")  # passed over, which is no failure
        said = sections(text).get("Service", {})
        for key in ("ExecStartPre", "ExecStart", "ExecStartPost"):
            for line in said.get(key, ()):
                if not self._execute(line, said):
                    self._ended(unit, said)
                    self.state[unit] = "failed"
                    return Answer(1, "", f"Job for {unit} failed because the control process exited with error code.\n")
        oneshot = said.get("Type", ["simple"])[-1] == "oneshot"
        stays = not oneshot or said.get("RemainAfterExit", ["no"])[-1] in ("yes", "true")
        self.state[unit] = "active" if stays else "inactive"
        self._client(unit, stays)
        return Answer(0, "", "")

    def _conditions(self, said: dict[str, list[str]]) -> bool:
        """Whether its conditions hold; only those on paths are known."""
        for key, values in said.items():
            if not key.startswith(("Condition", "Assert")):
                continue
            if key not in CONDITIONS:
                raise NotPlayed(key)
            for value in values:
                if self._there(value.lstrip("!"), key.endswith("Glob")) is value.startswith("!"):
                    return False
        return True

    def _there(self, path: str, glob: bool) -> bool:
        self.host.sync()
        if not glob:
            return self.host.exists(path)
        words = path.split("/")
        found = {tuple(one.split("/")[: len(words)]) for one in (*self.host.files, *self.host.links)}
        return any(len(one) == len(words) and all(map(fnmatchcase, one, words)) for one in found)

    def stop(self, unit: str) -> Answer:
        """Stop it."""
        if self.text(unit) is None and unit not in self.loaded:
            return Answer(5, "", f"Failed to stop {unit}: Unit {unit} not loaded.\n")
        said = sections(self.loaded.get(unit) or self.text(unit) or "").get("Service", {})
        if self.state.get(unit) == "active":
            for line in said.get("ExecStop", ()):
                self._execute(line, said)
            self._ended(unit, said)
        self.state[unit] = "inactive"
        return Answer(0, "", "")

    def _ended(self, unit: str, said: dict[str, list[str]]) -> None:
        """The manager ends what is left of it, then runs what comes after."""
        pipe = self._environment(said).get("CUDA_MPS_PIPE_DIRECTORY")
        if unit == SERVES and pipe:
            self.host.machine.mps.pop(pipe, None)
        self._client(unit, False)
        for line in said.get("ExecStopPost", ()):
            self._execute(line, said)

    def crash(self, unit: str) -> None:
        """Its process dies, and is not started again."""
        said = sections(self.loaded.get(unit, "")).get("Service", {})
        self._ended(unit, said)
        self.state[unit] = "failed"

    def _client(self, unit: str, runs: bool) -> None:
        clients = self.host.machine.clients
        program = CLIENTS.get(unit, "")
        if program in clients:
            clients.remove(program)
        if program and runs:
            clients.append(program)

    def _environment(self, said: dict[str, list[str]]) -> dict[str, str]:
        pairs = [pair for line in said.get("Environment", ()) for pair in shlex.split(line)]
        return {name: value for name, _equals, value in (pair.partition("=") for pair in pairs)}

    def _execute(self, line: str, said: dict[str, list[str]]) -> bool:
        """Run a line; whether it may go on."""
        bare = line.lstrip("-@:+!")
        words = tuple(shlex.split(bare.replace("%%", "%").replace("$$", "$")))
        try:
            done = self.host.play(words, "", self._environment(said))
        except Hang:
            return False  # it is killed when the time for a start or a stop is over
        return done.rc == 0 or "-" in line[: len(line) - len(bare)]

    def boot(self) -> None:
        """Start what is enabled, in the order of After and Before."""
        self.state = {}
        self.loaded = {unit: text for unit in self.loaded for text in [self.text(unit)] if text is not None}
        units = sorted({path.rpartition("/")[2] for path in self.host.links if path.startswith(FOLDER)})
        after: dict[str, set[str]] = {unit: set() for unit in units}
        for unit in units:
            said = sections(self.text(unit) or "").get("Unit", {})
            after[unit] |= {other for other in " ".join(said.get("After", ())).split() if other in after}
            for other in " ".join(said.get("Before", ())).split():
                if other in after:
                    after[other].add(unit)
        done: list[str] = []
        while len(done) < len(units):
            done += [unit for unit in units if unit not in done and after[unit] <= set(done)]
        for unit in done:
            self.start(unit)


def systemctl(host: FakeHost, argv: tuple[str, ...]) -> Answer:
    """systemctl."""
    services: Services = host.services  # type: ignore[attr-defined]
    words = [word for word in argv[1:] if not word.startswith("-")]
    options = [word for word in argv[1:] if word.startswith("-")]
    verb, units = words[0], [word if "." in word else f"{word}.service" for word in words[1:]]
    if verb == "daemon-reload":
        known = {unit: services.text(unit) for unit in services.loaded}
        services.loaded = {unit: text for unit, text in known.items() if text is not None}
        return Answer(0, "", "")
    if verb == "is-system-running":
        return Answer(0, "running\n", "")
    if verb == "show":
        return _show(services, units, options)
    answers = [_one(host, services, verb, unit, options) for unit in units]
    worst = max(answers, key=lambda answer: answer.rc)
    return Answer(worst.rc, "".join(one.out for one in answers), "".join(one.err for one in answers))


def _one(host: FakeHost, services: Services, verb: str, unit: str, options: list[str]) -> Answer:
    if verb in ("start", "stop"):
        return services.start(unit) if verb == "start" else services.stop(unit)
    if verb in ("restart", "try-restart", "reload-or-restart"):
        return _restart(services, verb, unit)
    if verb == "is-enabled":
        on = services.enabled(unit)
        return Answer(0 if on else 1, "enabled\n" if on else "disabled\n" if services.text(unit) else "not-found\n", "")
    if verb in ("is-active", "is-failed"):
        state = services.state.get(unit, "inactive")
        return Answer(0 if state == ("active" if verb == "is-active" else "failed") else 3, state + "\n", "")
    if verb == "reset-failed":
        if services.state.get(unit) == "failed":
            services.state[unit] = "inactive"
        return Answer(0, "", "")
    if verb in ("enable", "disable"):
        return _enable(host, services, verb, unit, "--now" in options)
    raise NotPlayed(f"systemctl {verb} {unit}")


def _restart(services: Services, verb: str, unit: str) -> Answer:
    if services.text(unit) is None:
        return Answer(5, "", f"Failed to restart {unit}: Unit {unit} not found.\n")
    if verb == "try-restart" and services.state.get(unit) != "active":
        return Answer(0, "", "")
    services.stop(unit)
    return services.start(unit)


def _enable(host: FakeHost, services: Services, verb: str, unit: str, now: bool) -> Answer:
    text = services.text(unit)
    if text is None:
        return Answer(1, "", f"Failed to {verb} unit: Unit file {unit} does not exist.\n")
    wanted = sections(text).get("Install", {}).get("WantedBy", ["multi-user.target"])
    for target in " ".join(wanted).split():
        link = f"{FOLDER}/{target}.wants/{unit}"
        if verb == "enable":
            host.links[link] = f"{FOLDER}/{unit}"
        else:
            host.links.pop(link, None)
    if now:
        return services.start(unit) if verb == "enable" else services.stop(unit)
    return Answer(0, "", "")


def _show(services: Services, units: list[str], options: list[str]) -> Answer:
    wanted = ",".join(word.partition("=")[2] for word in options if word.startswith(("--property=", "-p="))).split(",")
    bare = "--value" in options
    blocks = []
    for unit in units:
        state = services.state.get(unit, "inactive")
        there = services.text(unit) is not None
        known = {
            "ActiveState": state,
            "SubState": {"active": "running", "failed": "failed"}.get(state, "dead"),
            "LoadState": "loaded" if there or unit in services.loaded else "not-found",
            "UnitFileState": ("enabled" if services.enabled(unit) else "disabled") if there else "",
            "NeedDaemonReload": "yes" if services.stale(unit) else "no",
            "Result": "exit-code" if state == "failed" else "success",
            "MainPID": "4711" if state == "active" else "0",
        }
        blocks.append("".join(f"{known[name]}\n" if bare else f"{name}={known[name]}\n" for name in wanted))
    return Answer(0, "\n".join(blocks), "")
