"""A watch: each new statement of a log is audited against all before it, and what it does is said.

Said means written to the state first, then printed, then noted as printed: whatever happens in
between, an event is said at least once, and only the last one can be said twice.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from casemate.audit.result import Verdict
from casemate.audit.watch.exposure import Finding, IncrementalAudit, Step
from casemate.audit.watch.state import Event, Pending, WatchState
from casemate.audit.watch.webhook import Webhook
from casemate.audit.words import NAMES_SHOWN
from casemate.published import People
from casemate.query.language import Scalar
from casemate.query.parse import Arrived, GrowingLog

SCHEMA = "casemate.watch/1"


@dataclass(frozen=True)
class Listeners:
    """Who hears of events: somebody to whom they are said, and perhaps a webhook."""

    say: Callable[[Event], None]
    as_posted: Callable[[Event], str]
    webhook: Webhook | None = None


class LogWatch:
    """Follows one log; `poll` takes what has become complete since it was last called."""

    def __init__(
        self,
        log: GrowingLog,
        audit: IncrementalAudit,
        state: WatchState,
        path: Path,
        heard_by: "Listeners",
    ) -> None:
        """Go on from a state, which is kept at `path`."""
        self.state = state
        self._log, self._audit, self._path = log, audit, path
        self._heard_by = heard_by
        self._deliver()
        for each in log.resume(state.runs, state.digests):
            audit.add(each.entry, known=True)

    def poll(self) -> None:
        """Audit the statements that have come, and deliver what there is to say."""
        before = self.state
        for each in self._log.arrived():
            self._take(each)
        if self.state is not before:
            self.save()
        self._deliver()

    def save(self) -> None:
        """Write where the watch stands."""
        self.state.write(self._path)

    def _take(self, arrived: Arrived) -> None:
        state = self.state
        step = self._audit.add(arrived.entry)
        known = {(each.record, each.person, each.column) for each in state.exposed}
        newly = [f for f in step.findings if (f.record, f.person, f.column) not in known]
        verdict = Verdict.EXPOSED if known or newly else step.verdict
        runs, digests = self._log.seen
        self.state = replace(
            state,
            runs=tuple(runs),
            digests=dict(digests),
            queries=state.queries + 1,
            verdict=str(verdict),
            exposed=(*state.exposed, *newly),
            undecided=step.undecided,
            doubts=tuple(dict.fromkeys((*state.doubts, *step.doubts))),
        )
        event = self._event(arrived, step, newly, state)
        if event is not None:
            pending = Pending(event, unposted=self._heard_by.webhook is not None)
            self.state = replace(self.state, pending=(*self.state.pending, pending))
            self.save()
            self._deliver()

    def _event(
        self, arrived: Arrived, step: Step, newly: list[Finding], before: WatchState
    ) -> Event | None:
        """What there is to say about a statement, if anything."""
        undecided = tuple(sorted(set(step.undecided) - set(before.undecided)))
        doubts = tuple(each for each in step.doubts if each not in before.doubts)
        if not (newly or undecided or doubts or step.refused):
            return None
        return Event(
            self.state.queries,
            arrived.file,
            arrived.entry.line,
            self.state.verdict,
            tuple(newly),
            len({each.person for each in self.state.exposed}),
            undecided,
            doubts,
            step.refused,
        )

    def _deliver(self) -> None:
        """Say what was not said yet; what cannot be posted stays in the state."""
        words, webhook = self._heard_by, self._heard_by.webhook
        for each in self.state.pending:
            if each.unprinted:
                words.say(each.event)
                self.state = self.state.heard(replace(each, unprinted=False))
                self.save()
        for each in self.state.pending:
            if webhook is None or not webhook.post(words.as_posted(each.event)):
                return
            self.state = self.state.heard(replace(each, unposted=False))
            self.save()


# Events in words --------------------------------------------------------------------------------


@dataclass(frozen=True)
class EventWords:
    """How events are written: by row numbers, or with `reveal` by keys; values never are."""

    people: People
    reveal: bool

    def as_json(self, event: Event) -> str:
        """An event as one line of JSON."""
        fields: dict[str, Any] = {
            "schema": SCHEMA,
            "query": event.query,
            "file": event.file,
            "line": event.line,
            "verdict": event.verdict,
            "newly_exposed": [self._finding(each, event.query) for each in event.newly_exposed],
            "exposed": event.exposed,
            "undecided": [self._record(each) for each in event.undecided],
            "doubts": list(event.doubts),
            "refused": list(event.refused),
        }
        return json.dumps(fields, ensure_ascii=False, default=str)

    def as_text(self, event: Event) -> str:
        """An event as lines to read, one for each thing there is to say."""
        where = f"query {event.query} ({event.file}:{event.line}): "
        said = [f"not audited: {each}" for each in event.refused]
        people = len({each.person for each in event.newly_exposed})
        if people:
            who = "1 person" if people == 1 else f"{people:,} people"
            said.append(f"{who} newly exposed ({event.exposed:,} in all): {self._whose(event)}")
        if event.undecided:
            said.append(f"undecided: {_listed('record', map(self._record, event.undecided))}")
        said += [f"undecided: {each}" for each in event.doubts]
        return "\n".join(where + each for each in said)

    def _finding(self, found: Finding, query: int) -> dict[str, Any]:
        return {
            "record": None if found.record is None else self._record(found.record),
            "person": self._person(found.person),
            "column": found.column,
            "by": query,
            "proof": found.proof,
        }

    def _record(self, place: int) -> Scalar:
        return self.people.record(place) if self.reveal else place + 1

    def _person(self, first: int) -> Scalar:
        return self.people.person(first) if self.reveal else first + 1

    def _whose(self, event: Event) -> str:
        """Records, and people of whom all rows together are known."""
        records = sorted({each.record for each in event.newly_exposed if each.record is not None})
        totals = sorted({each.person for each in event.newly_exposed if each.record is None})
        said = [_listed("record", map(self._record, records))] if records else []
        if totals:
            said.append(f"all rows of {_listed('person', map(self._person, totals))}")
        return ", ".join(said)


def _listed(word: str, names: Iterable[Scalar]) -> str:
    """Some names after a word for what they are."""
    every = list(map(str, names))
    more = len(every) - NAMES_SHOWN
    listed = ", ".join(every[:NAMES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
    return f"{word}{'s' if len(every) > 1 else ''} {listed}"
