#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""listener RECORD WHEN STATUS [silent|garbage|timeless|eventless]: a process that listens as Tidepool's would, in
$XDG_RUNTIME_DIR/tidepool, and tells what the record says, a document at each request. Ends with STATUS
(negative: by that signal) WHEN so many seconds have passed ("600s"), or once it has told so many documents ("8x");
SIGTERM ends it with status 43, SIGUSR1 is printed."""
import json
import os
import pathlib
import signal
import socket
import sys
import threading
import time

lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
facts = [l for l in lines if l.get("format") == "tidepool-facts"]
events = [l for l in lines if l.get("format") == "tidepool-event"]
codes = [l for l in lines if l.get("format") == "tidepool-code"]
mode = sys.argv[4] if len(sys.argv) > 4 else ""
told = 0


def answer(request):
    global told
    if request.get("get") == "facts":
        document = dict(facts[min(told, len(facts) - 1)], pid=os.getpid(), **({"time_ns": 0} if mode == "timeless" else {}))
        told += 1
        return [document]
    if "explain" in request:
        return [{"text": c["spec"]} for c in codes if c["site"] == request["explain"]] or [{"error": "no site of that number has code"}]
    if mode == "eventless":
        return [{"what": "no event"}]
    since = request.get("since", 0)
    now = facts[min(told, len(facts) - 1)]["time_ns"]
    new = [e for e in events if e["serial"] > since and e["time_ns"] <= now]
    return new + [{"end": max([since] + [e["serial"] for e in new])}]


def serve(connection):
    with connection, connection.makefile("rwb") as stream:
        for line in stream:
            if mode == "silent":
                continue
            if mode == "garbage":
                stream.write(b"\xff\x00{]\n")
            else:
                for out in answer(json.loads(line)):
                    stream.write(json.dumps(out).encode() + b"\n")
            stream.flush()


def listen(server):
    while True:
        connection, _ = server.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


folder = pathlib.Path(os.environ["XDG_RUNTIME_DIR"]) / "tidepool"
folder.mkdir(mode=0o700, exist_ok=True)
path = folder / f"{os.getpid()}.sock"
server = socket.socket(socket.AF_UNIX)
before = path.with_suffix(".new")  # as Tidepool's: a name at which nobody listens yet is removed as a dead one's
server.bind(str(before))
server.listen()
before.rename(path)
signal.signal(signal.SIGTERM, lambda *_: (path.unlink(), os._exit(43)))
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"USR1\n"))
threading.Thread(target=listen, args=(server,), daemon=True).start()
print("TIDEPOOL_LISTEN=" + os.environ.get("TIDEPOOL_LISTEN", ""), flush=True)
count, begun = int(sys.argv[2][:-1]), time.monotonic()
while told < count if sys.argv[2].endswith("x") else time.monotonic() - begun < count:
    time.sleep(.02)
path.unlink()
status = int(sys.argv[3])
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
