# SPDX-License-Identifier: MIT
"""What is known of this process: as a dict, and as the page that the command `tidepool report` makes.

What it needs of Python's own library is imported where it is used: most programs ask for no page."""
from __future__ import annotations

import os
import sys
import time
from typing import Any

from . import _core

__all__ = ["facts", "report"]


def facts() -> dict[str, Any]:
    """Pools, sites, buffers, learning and settings of the process: all that is known of it now. The
    header `tidepool/facts.h` says what the members are.

    >>> facts()["pid"] == os.getpid()
    True
    """
    import json

    known: dict[str, Any] = json.loads(_core.facts_text())
    return known


def report(path: str | os.PathLike[str]) -> None:
    """Writes a page about the process as it is now, one HTML file that needs no network.

    It is made by the command `tidepool`, which the package has where it was built with jansson;
    FileNotFoundError if there is none, here or on the PATH, RuntimeError with its words if it makes
    no page. For a page of a whole run, with what changed in it: `tidepool record -o FILE python …`.
    """
    import pathlib
    import subprocess
    import tempfile

    program = command()
    with tempfile.TemporaryDirectory(prefix="tidepool-") as folder:
        record = pathlib.Path(folder) / "now.rec"
        record.write_text(_record(), encoding="utf-8")
        own = [sys.executable] if "python" in os.path.basename(sys.executable or "") else []  # a program may have Python in it
        done = subprocess.run([*own, program, "report", "-o", os.path.abspath(os.fspath(path)), str(record)],
                              capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{program} ended with {done.returncode}")


def command() -> str:
    """The path of the command `tidepool`: the package's own, else what is on the PATH and not the package's script,
    which would ask here again."""
    import shutil

    own = os.path.join(os.path.dirname(__file__), "tidepool-command")
    if os.access(own, os.X_OK):
        return own
    found = shutil.which("tidepool")
    if found is None or _is_script(found):
        raise FileNotFoundError("there is no command `tidepool`, in the package or on the PATH: build the package, or the "
                                "library, with jansson and libjs-chart.js (Debian: libjansson-dev, libjs-chart.js)")
    return found


def _is_script(path: str) -> bool:
    with open(path, "rb") as file:
        return b"tidepool.__main__" in file.read(4096)


def _plain(word: str) -> str:
    """An argument that is no UTF-8 comes with surrogates, which no JSON may have."""
    return os.fsencode(word).decode("utf-8", "replace")


def _record() -> str:
    """A record of one look, of a process that has not ended."""
    import json

    head = {"format": "tidepool-record", "format_version": 1, "program": [_plain(word) for word in sys.orig_argv], "pid": os.getpid(),
            "started_wall_ns": time.time_ns(), "period_ms": 0}
    return json.dumps(head) + "\n" + _core.facts_text() + json.dumps({"end": {}}) + "\n"
