# SPDX-License-Identifier: MIT
"""A file that is written whole or not at all: beside the old one, and renamed when all is there."""
from __future__ import annotations

import contextlib
import os
import sys
from typing import BinaryIO, Iterator

from profiler.tool.say import NO, Refusal


@contextlib.contextmanager
def output(path: str) -> Iterator[BinaryIO]:
    """ "-" is the standard output, unless that is a terminal: what is written is no text for people. Whatever is raised
    leaves no file, and the one that had the name stays."""
    if path == "-":
        if sys.stdout.isatty():
            raise Refusal(NO, "the standard output is a terminal: name a file with -o FILE")
        yield sys.stdout.buffer
        return
    if os.path.exists(path) and not os.path.isfile(path):  # a rename would replace a device
        raise Refusal(NO, f"{path}: is there and is no regular file")
    temporary = f"{path}.tmp-{os.getpid()}"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # of a dead process; what stays is another user's
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, path)
    except OSError as error:
        raise Refusal(NO, f"{path}: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
