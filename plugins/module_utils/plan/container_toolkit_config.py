# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the toolkit's own files say: who may choose GPUs, and where nvidia-cdi-refresh writes its specification.

Both files are the package's. Single keys are set in them, everything else in them stays as it is.
"""

from __future__ import annotations

from . import toml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple

    from ..core.plan import Todo
    from ..core.seen import File
else:
    from ..core.named import NamedTuple

CONFIG = "/etc/nvidia-container-runtime/config.toml"
# At their defaults, any unprivileged container takes the GPUs that it names in a variable, other tenants' among them.
CDI_ONLY = (
    "accept-nvidia-visible-devices-envvar-when-unprivileged",
    "accept-nvidia-visible-devices-as-volume-mounts",
)

SERVICE = "nvidia-cdi-refresh.service"
UNIT_FOLDERS = ("/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system")
ENVIRONMENT = "/etc/nvidia-container-toolkit/nvidia-cdi-refresh.env"
OUTPUT = "/etc/cdi/nvidia.json"
# The service then writes our specification, as we would, at boot and when the driver's files change.
STEERED = {
    "NVIDIA_CTK_CDI_OUTPUT_FILE_PATH": OUTPUT,
    "NVIDIA_CTK_CDI_GENERATE_OUTPUT_FORMAT": "json",
    "NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES": "uuid",
}


class Kept(NamedTuple):
    """A file of the package's: as a look found it, and what it reads as, links followed."""

    file: File | None
    text: str


def plan_cdi_only(todo: Todo, config: Kept) -> None:
    """Plan that GPUs are handed out by CDI alone. The runtime reads its file per container: nothing restarts."""
    said = toml.parse(config.text, CONFIG)
    missing = [key for key in CDI_ONLY if said.get(key) is not False]
    if missing:
        from .container_runtime_change import edit
        from .toml_text import with_key

        text = config.text
        for key in missing:
            text = with_key(text, key, False, CONFIG)
        edit(todo, CONFIG, text, config.file, f"let containers have GPUs by CDI alone, in {CONFIG}")


def plan_steering(todo: Todo, environment: Kept) -> None:
    """Plan that nvidia-cdi-refresh writes where we do; else its specification would outrank ours."""
    text = steered(environment.text)
    if text != environment.text:
        from .container_runtime_change import edit

        edit(todo, ENVIRONMENT, text, environment.file, f"have {SERVICE} write {OUTPUT} ({ENVIRONMENT})")


def steered(text: str) -> str:
    """The environment file with our lines; lines of others stay, each of ours is there once."""
    lines = []
    missing = dict(STEERED)
    for line in text.splitlines(keepends=True):
        key, value = assignment(line)
        if key not in STEERED:
            lines.append(line)
        elif key in missing:
            lines.append(line if value == STEERED[key] else f"{key}={STEERED[key]}\n")
            del missing[key]
    if missing and lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return "".join(lines) + "".join(f"{key}={value}\n" for key, value in missing.items())


def assignment(line: str) -> tuple[str, str]:
    """NAME and value of a line as systemd reads it, quotes taken off; ("", "") for a comment or nothing."""
    bare = line.strip()
    if not bare or bare[0] in "#;" or "=" not in bare:
        return "", ""
    key, _equals, value = bare.partition("=")
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    return key.strip(), value
