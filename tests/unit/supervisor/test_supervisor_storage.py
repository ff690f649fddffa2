"""Files of the supervisor: stored specifications and log files."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from kairship.supervisor import HttpProbe, ProcessSpec, TcpProbe
from kairship.supervisor.logfile import LogFile
from kairship.supervisor.running import RunningProcesses
from kairship.supervisor.store import SpecStore, StoredSpec

text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
part = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,10}", fullmatch=True)
name = st.builds("{}/{}".format, part, part)
port = st.integers(1, 65535)
http_probe = st.builds(HttpProbe, url=text.map("https://{}".format), ca_file=st.none() | text)
spec = st.builds(
    ProcessSpec,
    name=name,
    argv=st.lists(text, min_size=1, max_size=3).map(tuple),
    cwd=text.map("/{}".format),
    env=st.dictionaries(part, text, max_size=3),
    after=st.lists(name, max_size=2).map(tuple),
    ports=st.lists(port, max_size=2).map(tuple),
    probe=st.none() | http_probe | st.builds(TcpProbe, port=port),
    stop_timeout=st.floats(0, 1e6),
)
remembered = st.builds(StoredSpec, spec=spec, stopped=st.booleans())


@settings(max_examples=15, deadline=None)
@given(generations=st.lists(st.lists(remembered, max_size=4), min_size=1, max_size=3))
def test_specifications_come_back_as_they_were(generations: list[list[StoredSpec]]) -> None:
    with TemporaryDirectory() as directory:
        store = SpecStore(Path(directory))
        for generation in generations:
            wanted = {item.spec.name: item for item in generation}
            store.sync(wanted)
            assert SpecStore(Path(directory)).load() == wanted


def test_a_damaged_list_of_running_processes_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "running.json"
    path.write_bytes(b"")  # a power failure may leave it like this
    RunningProcesses(path).sweep()
    assert path.read_bytes() == b"{}"


def test_the_tail_of_a_log_reaches_into_its_older_part(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log")
    assert log.tail(5) == []
    log.path.write_text("".join(f"line {number}\n" for number in range(20_000)))
    log.rotate()
    assert log.size() == 0
    log.path.write_text("new\n")
    assert log.tail(1) == ["new"]
    assert log.tail(3) == ["line 19998", "line 19999", "new"]
    assert len(log.tail(15_000)) == 15_000


def test_the_last_line_is_of_this_run_and_not_blank(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log")
    log.path.write_text("from the run before\n")
    start = log.size()
    assert log.last_line(since=start) == ""
    with log.path.open("a") as file:
        file.write(f"first\nfatal: {'x' * 10_000}\nthe end\n\n  \n")
    assert log.last_line(since=start) == "the end"
    log.path.write_text("rotated\n")
    assert log.last_line(since=10_000) == "rotated"
