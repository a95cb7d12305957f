# SPDX-License-Identifier: MIT
"""One look at a process that listens: its events since the last one, then its facts."""
from __future__ import annotations

from typing import Any, Iterator

from profiler.record.value import count, fault_of_facts, objects, text
from profiler.tool.client import Client
from profiler.tool.say import NO, Refusal

EVENTS_MAX = 65536  # lines of one answer
CODES_MAX = 256  # sites whose code is asked for; of more, the first ones
Lines = Iterator[tuple[str, dict[str, Any]]]


class Look:
    def __init__(self, pid: int, folder: str | None, timeout: float) -> None:
        self.pid, self.folder, self.timeout = pid, folder, timeout
        self.client: Client | None = None
        self.serial = self.since_ns = 0  # of the last event, of the last facts
        self.asked: dict[int, int] = {}  # by site: the plan whose code was asked for

    def once(self) -> Lines:
        """Facts where a connection was made, then events, gaps, facts and code as a record has them. Refusal where the
        process gives no good answer; the next look tries anew, for it may have executed another program. That one's facts,
        which have another "since_ns", come before its events, and those from the first on."""
        try:
            if self.client is None:  # a connection ends when the process executes another program
                self.client = Client(self.pid, self.folder, self.timeout)
                yield from self._facts(self.client)
            yield from self._events(self.client)
            yield from self._facts(self.client)
        except Refusal:
            self.close()
            raise

    def close(self) -> None:
        if self.client is not None:
            self.client.close()
        self.client = None

    def _events(self, client: Client) -> Lines:
        client.send({"get": "events", "since": self.serial})
        for _ in range(EVENTS_MAX):
            line = client.line()
            if "end" in line:
                return
            if "gap" in line:
                yield "gap", line
                continue
            if text(line, "format") != "tidepool-event" or count(line, "time_ns") == 0:
                raise client.refusal("its answer is no event")
            self.serial = max(self.serial, count(line, "serial"))
            yield "event", line
        raise client.refusal("its answer has no end")

    def _facts(self, client: Client) -> Lines:
        facts = client.facts()
        fault = fault_of_facts(facts)
        if fault is not None:
            raise client.refusal(fault)
        if count(facts, "since_ns") != self.since_ns:
            self.since_ns, self.serial, self.asked = count(facts, "since_ns"), 0, {}
        yield "facts", facts
        for site in objects(facts, "sites"):
            yield from self._code(client, count(site, "id"), count(site, "generation")) if text(site, "tier") == "compiled" else ()

    def _code(self, client: Client, site: int, generation: int) -> Lines:
        """The spec of a site that has another plan than when it was asked for last. A process may refuse: it is not asked
        again for that plan."""
        if self.asked.get(site) == generation or (site not in self.asked and len(self.asked) == CODES_MAX):
            return
        self.asked[site] = generation
        try:
            spec = text(client.ask({"explain": site}), "text")
        except Refusal as refusal:
            if refusal.code != NO:
                raise
            return
        yield "code", {"format": "tidepool-code", "site": site, "generation": generation, "spec": spec}
