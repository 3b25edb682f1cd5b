# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root's own files, which decide what root does here: believed only where no other account could have put them there.

And what its configuration allows on this host.
"""

from __future__ import annotations

from ..core.errors import Refused
from ..plan.installed import CONFIG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..core.host import Host
    from ..core.seen import File
    from ..plan.config_text import Scalar
    from ..plan.pins import Pins

MEND = "make it root's, writable by no one else"
OUTSIDE = "host.unit: this host's configuration is managed outside bcd ([host] units = false in root's config.toml)"


def config(host: Host) -> dict[str, dict[str, Scalar]]:
    """The configuration, empty when there is none; raises Refused when another account could have written it."""
    text = root_text(host, CONFIG)
    if text is None:
        return {"": {}}
    from ..plan.config_text import parse_config

    return parse_config(text)


def root_text(host: Host, path: str) -> str | None:
    """The text of a file of root's own, None when it is absent.

    Raises Refused for a file that is another's, a symbolic link or open to others' writing. And for a directory above
    it that is, where this process is root: who can write there can put another file, or none, in its place.
    """
    above = path if host.uid() == 0 else ""
    while above:
        above = above.rpartition("/")[0]
        folder = host.file(above or "/")
        if folder is not None and not only_roots(folder):
            raise Refused(
                f"{above or '/'} is not a directory only root can write, and {path} decides what root does: {MEND}"
            )
    seen = host.file(path)
    if seen is None:
        return None
    if not seen.regular or not only_roots(seen):
        raise Refused(f"{path} must be a regular file root owns that no one else can write")
    return seen.text


def only_roots(seen: File) -> bool:
    """Whether root owns it and no one else can write it; a symbolic link's mode says that anyone can."""
    return seen.uid == 0 and not seen.mode & 0o022


def refuse_if_outside(host: Host) -> None:
    """Raise Refused where root's configuration keeps us off this host."""
    units = config(host).get("host", {}).get("units", True)
    if not isinstance(units, bool):
        raise Refused(f"{CONFIG}: [host] units is {units!r}: set it to true or false")
    if not units:
        raise Refused(OUTSIDE)


def says_nothing(host: Host) -> bool:
    """Whether root's configuration is not there, or has no key: then nothing is pinned either."""
    return not any(config(host).values())


def pinned(host: Host) -> Pins:
    """Who may sign for this host; raises Refused for a pin that is malformed."""
    from ..plan.pins import pins

    return pins(config(host))
