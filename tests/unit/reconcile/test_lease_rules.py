"""The rules of leader election: never two leaders, whatever is late, lost or suspended, and one leader in the end."""

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.reconcile import FakeClock

from kairship.reconcile import LeaderTerm, LeaseTiming, TermEnded
from kairship.reconcile.leaderelection.lease import Candidacy, LeaseRecord

TIMING = LeaseTiming()


def test_the_record_is_written_as_client_go_writes_it() -> None:
    clock = FakeClock()
    first = LeaseRecord().claimed("host_1", duration=8, at=clock.wall())
    assert first.fields() == {
        "holderIdentity": "host_1",
        "leaseDurationSeconds": 8,
        "acquireTime": "2026-01-01T00:16:40.000000Z",
        "renewTime": "2026-01-01T00:16:40.000000Z",
        "leaseTransitions": 0,
    }
    clock.pass_time(2.5)
    renewed = first.renewed(at=clock.wall())
    assert renewed.renew_time == "2026-01-01T00:16:42.500000Z"
    assert renewed.acquire_time == first.acquire_time
    released = renewed.released(at=clock.wall())
    assert (released.holder_identity, released.lease_duration_seconds) == ("", 1)
    assert released.claimed("host_2", duration=8, at=clock.wall()).lease_transitions == 1


def test_a_free_lease_is_claimed_at_once_and_a_held_one_after_its_duration() -> None:
    clock = FakeClock()
    candidate = Candidacy("me", TIMING, clock)
    held = LeaseRecord().claimed("other", duration=20, at=clock.wall())
    assert candidate.consider(None) is not None
    assert candidate.consider(held) is None
    clock.pass_time(19.9)
    assert candidate.consider(held) is None  # the duration of the record counts, not our own
    clock.pass_time(0.2)
    assert candidate.consider(held) is not None
    assert candidate.consider(held.renewed(at=clock.wall())) is None
    assert candidate.consider(held.released(at=clock.wall())) is not None


def test_the_clock_of_the_other_machine_does_not_matter() -> None:
    clock = FakeClock()
    candidate = Candidacy("me", TIMING, clock)
    long_ago = msgspec.structs.replace(
        LeaseRecord().claimed("other", duration=8, at=clock.wall()), renew_time="1999-01-01T00:00:00.000000Z"
    )
    assert candidate.consider(long_ago) is None


def test_a_lease_deleted_under_its_holder_counts_as_last_seen() -> None:
    clock = FakeClock()
    candidate = Candidacy("me", TIMING, clock)
    candidate.consider(LeaseRecord().claimed("other", duration=8, at=clock.wall()))
    clock.pass_time(7.9)
    assert candidate.consider(None) is None
    clock.pass_time(0.2)
    assert candidate.consider(None) is not None


def test_timing_that_could_lead_to_two_leaders_is_refused() -> None:
    with pytest.raises(ValueError, match="deadline"):
        LeaseTiming(duration=5, renew_deadline=5)


def test_a_term_that_is_over_stays_over() -> None:
    clock = FakeClock()
    term = LeaderTerm(scope="ns/lease", number=7, until=clock.now() + 5, clock=clock)
    term.check()
    clock.pass_time(4)
    assert term.extend(clock.now() + 5)
    clock.pass_time(5)
    assert not term.valid
    assert not term.extend(clock.now() + 5)
    with pytest.raises(TermEnded, match="term 7 of ns/lease is over"):
        term.check()
    another = LeaderTerm(scope="ns/lease", number=8, until=clock.now() + 5, clock=clock)
    another.end()
    assert not another.extend(clock.now() + 5)
    assert another.remaining() == 0


class Register:
    """A value that can be replaced only by a write that names its version."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.version = 0

    def swap(self, version: int, record: LeaseRecord) -> int | None:
        if version != self.version:
            return None
        self.record, self.version = record, self.version + 1
        return self.version


class Process:
    """A candidate that reads and writes in separate steps, so that anything can happen between them."""

    def __init__(self, name: str, clock: FakeClock) -> None:
        self.candidacy = Candidacy(name, TIMING, clock)
        self.term: LeaderTerm | None = None
        self.held: tuple[int, LeaseRecord] | None = None
        self.writing: tuple[float, int, LeaseRecord] | None = None
        """When the request was made, the version to replace, and the record."""


PROCESSES = st.integers(0, 2)


class ElectionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.register = Register()
        self.processes = [Process(f"p{number}", self.clock) for number in range(3)]

    @rule(number=PROCESSES)
    def look(self, number: int) -> None:
        process = self.processes[number]
        if process.writing or (process.term and process.term.valid):
            return
        process.term = None
        claim = process.candidacy.consider(self.register.record)
        if claim is not None:
            process.writing = (self.clock.now(), self.register.version, claim)

    @rule(number=PROCESSES)
    def renew(self, number: int) -> None:
        process = self.processes[number]
        if process.term and process.held and not process.writing:
            version, record = process.held
            process.writing = (self.clock.now(), version, record.renewed(at=self.clock.wall()))

    @rule(number=PROCESSES, reply_arrives=st.booleans())
    def write_arrives(self, number: int, reply_arrives: bool) -> None:
        """Delivers a write, however much later than it was sent."""
        process = self.processes[number]
        if process.writing is None:
            return
        asked_at, version, record = process.writing
        process.writing = None
        written = self.register.swap(version, record)
        if written is None or not reply_arrives:
            return
        process.held = (written, record)
        until = asked_at + TIMING.renew_deadline
        if process.term is None:
            process.term = LeaderTerm(scope="s", number=written, until=until, clock=self.clock)
        else:
            process.term.extend(until)

    @rule(number=PROCESSES)
    def write_is_lost(self, number: int) -> None:
        self.processes[number].writing = None

    @rule(seconds=st.sampled_from([0.1, 0.5, 2.0, 4.9, 5.0, 7.9, 8.0, 12.0]))
    def time_passes(self, seconds: float) -> None:
        """Time passes for all candidates; one that does nothing meanwhile was suspended."""
        self.clock.pass_time(seconds)

    @rule(number=PROCESSES)
    def release(self, number: int) -> None:
        process = self.processes[number]
        if process.term and process.held and not process.writing:
            process.term.end()
            process.term = None
            version, record = process.held
            self.register.swap(version, record.released(at=self.clock.wall()))

    @rule(number=PROCESSES)
    def killed_and_started_again(self, number: int) -> None:
        self.processes[number] = Process(f"p{number}-{self.clock.now()}-{self.register.version}", self.clock)

    @invariant()
    def at_most_one_leads(self) -> None:
        leaders = [process.term for process in self.processes if process.term and process.term.valid]
        assert len(leaders) <= 1

    @invariant()
    def the_leader_has_the_highest_number(self) -> None:
        terms = [process.term for process in self.processes if process.term]
        leading = [term.number for term in terms if term.valid]
        assert not leading or leading[0] == max(term.number for term in terms)

    def teardown(self) -> None:
        """After any history, a remaining candidate leads once the lease has expired."""
        last = Process("last", self.clock)
        last.candidacy.consider(self.register.record)
        self.clock.pass_time(TIMING.duration + 0.1)
        assert last.candidacy.consider(self.register.record) is not None


ElectionMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestElectionMachine = pytest.mark.timeout(60)(ElectionMachine.TestCase)
