# Copyright (c) 2026 bettercompute
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Give ansible-test the pip that it would download.

usage: get_pip.py HOME PIP_VERSION

ansible-test fills its virtual environments with a script from a host of its own, which a machine that only reaches a
package index cannot fetch. It first looks for that script in HOME/.ansible/test/cache, so this puts one there that
runs the wheel of the same pip version, fetched from the index.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = '''"""Run pip's own wheel, as get-pip does: install the packages named on the command line."""
import runpy
import sys

sys.path.insert(0, {wheel!r})
dropped = ("--no-setuptools", "--no-wheel")
sys.argv[1:] = ["install", "--upgrade"] + [word for word in sys.argv[1:] if word not in dropped]
runpy.run_module("pip", run_name="__main__", alter_sys=True)
'''


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 64
    cache, version = Path(argv[0]).resolve() / ".ansible" / "test" / "cache", argv[1]
    cache.mkdir(parents=True, exist_ok=True)
    wheel = cache / f"pip-{version}-py3-none-any.whl"
    if not wheel.exists():
        fetch = ["download", "--quiet", "--no-deps", "--dest", str(cache), f"pip=={version}"]
        done = subprocess.run([sys.executable, "-m", "pip", *fetch], check=False)
        if done.returncode:
            return done.returncode
    script = cache / f"get_pip_{version.replace('.', '_')}.py"
    script.write_text(SCRIPT.format(wheel=str(wheel)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
