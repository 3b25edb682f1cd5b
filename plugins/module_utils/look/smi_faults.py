# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What it means when nvidia-smi does not answer: the one place that reads its error texts."""

from __future__ import annotations

import re

from ..core.errors import SEEN_AS_ROOT, NotKnownYet, NotReady, StepFailed, Unreadable
from ..core.host import Host
from ..core.plan import Answer
from .smi import NO_GPU, Rows

LIBRARY = re.compile(r"^NVML library version: (\S+)$", re.MULTILINE)
# What is missing, by exit status and by text: both are the driver's to bring.
NOT_THERE = (
    (127, "", "nvidia-smi is not installed yet: it comes with the NVIDIA driver (the unit nvidia-driver)"),
    (
        9,
        "couldn't communicate with the NVIDIA driver",
        "the NVIDIA driver does not run: its kernel module is not loaded (the unit nvidia-driver)",
    ),
    (
        12,
        "couldn't find libnvidia-ml.so",
        "libnvidia-ml.so is not installed yet: it comes with the NVIDIA driver (the unit nvidia-driver)",
    ),
)
DENIED = re.compile(r"\bInsufficient Permissions\b")
# A dead GPU: drivers of today then print the rows of the others, this on standard error, and exit with 0.
DEAD = re.compile(r"^(?:Unable to determine the device handle for .*|Failed to initialize NVML: .*)$", re.MULTILINE)


ADDRESS = re.compile(r"\b[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\b")
LOST = "GPU is lost"
NO_FIELD = "is not a valid field to query"


class NoAnswer(StepFailed):
    """nvidia-smi ran and did not answer. `gpus` are the PCI addresses that it names, as printed.

    `no_field`: this driver's nvidia-smi does not know a field that was asked for.
    """

    def __init__(self, message: str, gpus: tuple[str, ...] = (), no_field: bool = False) -> None:
        super().__init__(message)
        self.gpus = gpus
        self.no_field = no_field


def tells_of_the_dead(answer: Answer) -> bool:
    """Whether an answer says that a GPU is there and does not answer, whatever else it says of none."""
    return DEAD.search(f"{answer.out}\n{answer.err}") is not None


def quoted(text: str) -> str:
    """A text of nvidia-smi for a message, on one line and no longer than a few of them."""
    plain = " ".join(text.split())
    return repr(plain if len(plain) <= 300 else plain[:300] + "...")


def judged(host: Host, answer: Answer, arguments: tuple[str, ...], silent: bool) -> str:
    """What an answer prints that is not plainly one, as `look.smi.answered` has it; raises the fault that it is."""
    if answer.rc in (0, 6) and NO_GPU.fullmatch(answer.out.strip()) and not tells_of_the_dead(answer):
        return ""
    fault = unanswered(host, answer, arguments)
    if fault:
        raise fault
    if not (silent or answer.out.strip()):
        raise StepFailed(f"nvidia-smi {' '.join(arguments)} prints nothing: see the kernel's log")
    return answer.out


def not_whole(rows: Rows, gpu: str) -> StepFailed:
    """The fault of rows that are not the one GPU's, or not all that there are."""
    if gpu:
        return StepFailed(f"nvidia-smi shows {len(rows)} GPUs for -i {gpu}, not one: look at the kernel's log for it")
    if any("count" in row and row["count"] != str(len(rows)) for row in rows):
        return StepFailed(f"nvidia-smi counts {rows[0]['count']} GPUs and shows {len(rows)}: see the kernel's log")
    indexes = [row["index"] for row in rows if "index" in row]
    return StepFailed(f"nvidia-smi shows the GPUs {', '.join(indexes)}, with a gap: see the kernel's log")


def unanswered(host: Host, answer: Answer, arguments: tuple[str, ...]) -> Exception | None:
    """The fault that nvidia-smi's answer to the arguments is; None when it did answer.

    NotReady: no nvidia-smi, no driver, no library. StepFailed: the loaded driver and the library differ (it names both
    versions and says to reboot the node), a lost GPU, and whatever else it says. Unreadable: root is needed.
    """
    said = f"{answer.out}\n{answer.err}"
    line = " ".join(("nvidia-smi", *map(_short, arguments)))
    for status, text, message in NOT_THERE:
        if answer.rc == status or (text and text in said):
            return NotReady(message)
    if "Driver/library version mismatch" in said:
        return _mismatch(host, said)
    if "Mismatch in versions between nvidia-smi and NVML" in said:
        return StepFailed("nvidia-smi and libnvidia-ml.so are of different versions: install both from one driver")
    if answer.rc == 0 and not tells_of_the_dead(answer):
        return None
    return _denied(host, line, said) if DENIED.search(said) else _failed(line, answer.rc, said)


def _short(word: str) -> str:
    """A word of a command line for a message: a list of many fields by its first."""
    return word if len(word) <= 150 else f"{word[: word.rfind(',', 0, 100)]},..."


def _denied(host: Host, line: str, said: str) -> Exception:
    if host.predicted and host.uid() != 0:
        return NotKnownYet(SEEN_AS_ROOT)
    return Unreadable(f"{line} lacks permission ({quoted(said)}): run it as root", denied=host.uid() != 0)


def _failed(line: str, status: int, said: str) -> StepFailed:
    if status < 0 or 128 < status < 255:
        return StepFailed(f"{line} was ended by a signal (exit status {status}): see the kernel's log")
    gpus = tuple(ADDRESS.findall(said))
    if gpus and LOST in said:  # each unit says it, for each such GPU: what was asked would make it three times as long
        line = "nvidia-smi"
    words = quoted(said) if said.strip() else "it said nothing"
    message = f"{line} exited with {status}: {words}{_advice(said)}"
    return NoAnswer(message, gpus, NO_FIELD in said)


def _mismatch(host: Host, said: str) -> NotReady:
    """The driver's module in the kernel and the library on disk are of different versions: a driver that waits."""
    from .driver import loaded  # neither is needed by a host whose driver answers
    from .driver_library import library

    found = LIBRARY.search(said)
    running = loaded(host)
    return NotReady(
        f"the loaded NVIDIA driver is {running.version if running else 'of an unknown version'} and libnvidia-ml is "
        f"{library(host) or (found.group(1) if found else 'of another one')}: reboot the node"
    )


def _advice(said: str) -> str:
    if LOST in said:
        return ": see the kernel's log for its Xid, and reset or reboot the node"
    if "GPU requires reset" in said:
        return ": reset the GPU, or reboot the node"
    if "blocked by the operating system" in said:
        return ": see which policy or cgroup keeps nvidia-smi from the GPU"
    if "In use by another client" in said:
        return ": end what uses the GPU"
    return ""
