"""Load from the workers of a real Dask cluster on the loopback, and what may be wrong with one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from synthetic import SECTION, measurement, results
from test_end_to_end import invoke, own_copy

from citius_lab import record
from citius_lab.cluster import merging, network
from citius_lab.cluster.driver import Cluster, compare, own_address, split
from citius_lab.definitions.protocols import Load
from citius_lab.definitions.workloads import contract
from citius_lab.errors import ClusterGone, LabError, LoadError
from citius_lab.judge import analyse, figures, verdict
from citius_lab.judge.histogram import Histogram
from citius_lab.measure import drive
from citius_lab.measure.drive import Shot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.testing import Result

pytest.importorskip("distributed", reason="dask.distributed is not installed")
from dask_cluster import DaskCluster

pytestmark = [
    # What Dask leaves to the collector when a connection ends is not the lab's.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    """A scheduler and two workers."""
    made = DaskCluster(tmp_path_factory.mktemp("dask"))
    made.worker()
    made.worker()
    yield made
    made.close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[DaskCluster]:
    """A scheduler without workers."""
    made = DaskCluster(tmp_path)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def has_generator() -> None:
    try:
        drive.load_command()
    except LoadError as error:
        pytest.skip(str(error))


def over(cluster: str, out: Path, *words: str, seconds: float = 4) -> Result:
    own = own_copy(out)
    asked = ["run", "quick", "--only", "fake", "--out", str(out), "--budget", str(seconds)]
    return invoke(*own, *asked, "--cluster", cluster, *words)


@pytest.mark.usefixtures("all_cpus", "brief")
def test_two_workers_measure_as_one(two: DaskCluster, tmp_path: Path) -> None:
    done = over(two.address, tmp_path / "out")
    assert done.exit_code == 0, done.output
    kept = record.load(tmp_path / "out")
    assert kept.run["cluster"]["scheduler"] == two.address
    measured = kept.of_kind("measurement")
    assert measured
    for entry in measured:
        assert entry["fault"] is None, entry["fault"]
        first, second = entry["generators"]
        load = entry["load"]
        assert load["completed"] == first["completed"] + second["completed"]
        assert Histogram.decode(load["latency_histogram"]).total == load["completed"]
        assert load["connections"]["asked"] == entry["connections"]
        for one in (first, second):
            # One kernel has one clock: the true offset is zero.
            assert abs(one["offset_us"]) <= one["uncertainty_us"] + 1
            assert abs(one["late_us"]) <= one["uncertainty_us"] + 1
    # Windows are so short that one of the two may get no processor in one of them.
    for number in (0, 1):
        assert sum(entry["generators"][number]["completed"] for entry in measured) > 0
    hello = analyse.analyse(kept).figures["quick/closed", "hello", "fake"]
    assert hello.verdict.word != figures.FAILED, hello.verdict
    assert not hello.shares_cpus
    # Offset with its uncertainty, in the terminal and on the page.
    assert done.output.count("wall clock") == 2
    assert " ms ± " in done.output
    assert (tmp_path / "out" / "report.html").read_text().count("wall clock") >= 2


def test_without_a_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citius_lab.cluster.driver.CONNECT_S", 1)
    with socket.socket() as unheard:  # bound, and does not listen
        unheard.bind(("127.0.0.1", 0))
        done = over(f"tcp://127.0.0.1:{unheard.getsockname()[1]}", tmp_path / "out")
    assert done.exit_code == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:" in done.output


def test_an_address_that_is_none(tmp_path: Path) -> None:
    done = over("nonsense", tmp_path / "out")
    assert done.exit_code == 1
    assert "expected an address such as tcp://scheduler:8786, got 'nonsense'" in done.output


def test_options_of_a_cluster_without_one() -> None:
    done = invoke("run", "quick", "--only", "fake", "--host", "127.0.0.1")
    assert done.exit_code == 1
    assert "give --cluster too" in done.output


def test_without_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = over("tcp://127.0.0.1:1", tmp_path / "out")
    assert done.exit_code == 1
    assert "pip install 'citius-lab[cluster]'" in done.output


def test_the_lab_without_a_cluster_does_not_import_dask() -> None:
    code = (
        "import sys, citius_lab.cli, citius_lab.measure.run; sys.exit('distributed' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_host_that_is_not_this_one(two: DaskCluster) -> None:
    with pytest.raises(LabError, match=r"--host 192\.0\.2\.1: expected an address of this host"):
        Cluster(two.address, "192.0.2.1")


def test_a_scheduler_without_workers(empty: DaskCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citius_lab.cluster.driver.WORKERS_S", 0.3)
    with pytest.raises(LabError, match="has no workers; start one"):
        Cluster(empty.address, "127.0.0.1")


def test_workers_without_the_generator_or_with_another(empty: DaskCluster, tmp_path: Path) -> None:
    other = tmp_path / "other-load"
    other.write_text("#!/bin/sh\necho citius-load 0.0.1\n")
    other.chmod(0o755)
    worker = empty.worker(CITIUS_LOAD=str(other))
    with pytest.raises(LabError, match=r"another load generator \(citius-load 0\.0\.1, "):
        Cluster(empty.address, "127.0.0.1")
    worker.kill()  # told to end just after it has registered, it may take minutes
    worker.wait(20)
    empty.worker(CITIUS_LOAD=str(tmp_path / "none"))
    with pytest.raises(LabError, match=r"cannot generate load: CITIUS_LOAD is .* not a command"):
        Cluster(empty.address, "127.0.0.1")


class Target:
    """A server that answers everything, in the place of a contestant."""

    def __init__(self) -> None:
        code = Path(__file__).parent / "contestants/python-fake/server.py"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen([sys.executable, str(code), "--port", str(self.port)])
        self.service_pids = ()
        deadline = time.monotonic() + 20
        while socket.socket().connect_ex(("127.0.0.1", self.port)) and time.monotonic() < deadline:
            time.sleep(0.02)

    def pids(self) -> list[int]:
        return [self.process.pid]

    def reaped_s(self) -> float:
        return 0.0

    def close(self) -> None:
        self.process.kill()
        self.process.wait(20)


def shot_of(**changes: Any) -> Shot:
    return Shot(Load(), contract().case_named("hello"), 8, 30.0, 0.1, None, **changes)


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_a_worker_that_ends_or_stands_still_during_a_run(
    empty: DaskCluster, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import random

    from citius_lab.cluster.driver import ClusterDriver
    from citius_lab.measure.plan import Placement

    monkeypatch.setattr("citius_lab.cluster.driver.RESULT_S", 1.0)
    monkeypatch.setattr("citius_lab.measure.drive.TIMEOUT_S", 1)
    worker = empty.worker()
    empty.worker()
    target = Target()
    hit = signal.SIGKILL if how == "killed" else signal.SIGSTOP
    shot = replace(shot_of(), window_s=30.0 if how == "killed" else 2.0)
    timer = threading.Timer(1.5, lambda: os.kill(worker.pid, hit))
    began = time.monotonic()
    try:
        with Cluster(empty.address, "127.0.0.1") as cluster:
            driver = ClusterDriver(
                ["citius-load"],
                placement=Placement((0,), (0,)),
                random=random.Random(1),
                cluster=cluster,
            )
            timer.start()
            said = "is gone" if how == "killed" else "did not end in time: it stands still"
            with pytest.raises(ClusterGone if how == "killed" else LoadError, match=said):
                driver.drive(target, shot, b"")  # type: ignore[arg-type]
        assert time.monotonic() - began < 25
        # The other worker's generator ends with the line, long before its window.
        deadline = time.monotonic() + 10
        while (left := generators(target.port)) and time.monotonic() < deadline:
            time.sleep(0.05)
        if how == "killed":
            assert left == []
    finally:
        timer.cancel()
        target.close()


def test_a_scheduler_that_dies_during_a_run(empty: DaskCluster) -> None:
    """The run ends at once, and so do the generators: nothing is left that could tell them to."""
    import random

    from citius_lab.cluster.driver import ClusterDriver
    from citius_lab.measure.plan import Placement

    for _ in range(2):
        empty.worker()
    target = Target()
    placement = Placement((0,), (0,))
    try:
        with Cluster(empty.address, "127.0.0.1") as cluster:
            driver = ClusterDriver(
                ["citius-load"], placement=placement, random=random.Random(1), cluster=cluster
            )

            def kill() -> None:
                wait_until(lambda: len(generators(target.port)) == 2, "two generators")
                empty.processes[0].kill()

            killing = threading.Thread(target=kill)
            killing.start()
            began = time.monotonic()
            with pytest.raises(ClusterGone, match=r"the Dask scheduler at tcp://\S+ is gone"):
                driver.drive(target, shot_of(), b"")  # type: ignore[arg-type]
            killing.join()
            # Its window is 30 s.
            assert time.monotonic() - began < 25
            wait_until(lambda: not generators(target.port), "the end of the generators")
    finally:
        target.close()


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.05)


@pytest.mark.usefixtures("all_cpus", "brief")
@pytest.mark.parametrize("which", ["scheduler", "worker"])
def test_a_run_whose_cluster_dies_is_resumed_on_a_new_one(
    empty: DaskCluster, tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was recorded stands; the rest is measured when the cluster is back."""
    first, _ = empty.worker(), empty.worker()
    out = tmp_path / "out"
    victim = empty.processes[0] if which == "scheduler" else first
    write = record.Recorder.write

    def write_and_kill(self: record.Recorder, kind: str, **fields: Any) -> dict[str, Any]:
        written = write(self, kind, **fields)
        if kind == "measurement" and victim.poll() is None:
            victim.kill()
            victim.wait(20)
        return written

    with monkeypatch.context() as patch:
        patch.setattr(record.Recorder, "write", write_and_kill)
        done = over(empty.address, out)
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 1, done.output
    assert "is gone" in done.output
    assert f"citius lab resume {out} goes on" in done.output.replace("\n", " ")
    kept = (out / "records.jsonl").read_text()
    before = record.load(out)
    assert before.of_kind("end")[-1]["interrupted"]
    assert all(entry["fault"] is None for entry in before.of_kind("measurement"))

    if which == "scheduler":
        empty.restart()
        empty.worker()
    empty.worker()
    again = invoke("--contestants", str(tmp_path / "contestants"), "resume", str(out))
    assert again.exit_code == 0, again.output
    assert (out / "records.jsonl").read_text().startswith(kept)
    resumed = record.load(out)
    assert not resumed.of_kind("end")[-1]["interrupted"]
    measured = resumed.of_kind("measurement")
    assert len(measured) > len(before.of_kind("measurement"))
    for entry in measured:
        assert entry["fault"] is None, entry["fault"]
        assert len(entry["generators"]) == 2
    key = ("round", "again", "series", "case", "run")
    cells = [tuple(one[name] for name in key) for one in measured]
    assert len(cells) == len(set(cells))


@pytest.mark.usefixtures("all_cpus", "brief")
def test_a_rerun_uses_the_cluster_of_the_first_run(two: DaskCluster, tmp_path: Path) -> None:
    out, second = tmp_path / "out", tmp_path / "second"
    assert over(two.address, out, "--link-mbit", "900", seconds=2).exit_code == 0
    own = ["--contestants", str(tmp_path / "contestants")]
    done = invoke(*own, "rerun", str(out), "--out", str(second))
    assert done.exit_code == 0, done.output
    assert "figures reproduced" in done.output
    kept = record.load(second)
    assert kept.run["cluster"]["scheduler"] == two.address
    assert kept.run["cluster"]["host"] == record.load(out).run["cluster"]["host"]
    assert kept.run["cluster"]["link_mbit"] == 900
    assert all(len(entry["generators"]) == 2 for entry in kept.of_kind("measurement"))


def generators(port: int) -> list[str]:
    """Command lines of load generators that ask a port."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "citius-load" in words[0] and any(f":{port}/" in word for word in words):
            found.append(" ".join(words))
    return found


@pytest.mark.parametrize(
    ("behind_s", "wall_s", "said"),
    [(0.02, 0, r"is known to ±\d+\.\d ms only"), (0, 7, r"wall clock of worker w is \+7\.0 s off")],
)
def test_clocks_that_cannot_be_compared(behind_s: float, wall_s: float, said: str) -> None:
    from citius_lab.cluster.driver import Run

    ours, theirs = socket.socketpair()
    ours.settimeout(5)

    def answer() -> None:
        while theirs.recv(64):
            time.sleep(behind_s)
            wall_ns = time.time_ns() + int(wall_s * 1e9)
            theirs.sendall(f"{time.monotonic_ns()} {wall_ns}\n".encode())

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        run = Run(None, "", shot_of(), None)  # type: ignore[arg-type]
        run.lines["w"] = ours
        with pytest.raises(LoadError, match=said):
            run.compare_clocks()
    finally:
        ours.close()
        thread.join()
        theirs.close()


def test_a_clock_that_is_ahead_is_found_within_its_uncertainty() -> None:
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    ahead_ns = 123_456_789_000

    def answer() -> None:
        while theirs.recv(64):
            theirs.sendall(f"{time.monotonic_ns() + ahead_ns} {time.time_ns()}\n".encode())

    thread = threading.Thread(target=answer)
    thread.start()
    clock = compare(ours, "w")
    ours.close()
    thread.join()
    theirs.close()
    assert abs(clock.offset_ns - ahead_ns) <= clock.uncertainty_ns
    assert clock.uncertainty_ns < 5e6


def test_an_instant_that_is_over_is_refused() -> None:
    """Others would have begun without it."""
    target = Target()
    try:
        words = [*drive.load_command(), "-d", "1", "--start-at", "1"]
        words += [f"http://127.0.0.1:{target.port}/hello"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    finally:
        target.close()
    assert done.returncode != 0
    assert "--start-at: that instant passed" in done.stderr


def test_an_address_of_its_own() -> None:
    assert own_address("tcp://127.0.0.1:8786") == "127.0.0.1"


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_parts_are_the_whole(n: int) -> None:
    shot = Shot(Load(requests=1000), contract().case_named("hello"), 10, 1.0, 0.1, 5000.0)
    parts = split(shot, n)
    assert sum(part.connections for part in parts) == 10
    assert sum(part.rate or 0 for part in parts) == pytest.approx(5000)
    assert sum(part.load.requests or 0 for part in parts) == 1000


def test_a_broadcast_is_one_generators_and_one_connection_too() -> None:
    shot = Shot(Load(ws=True, senders=1), contract().case_named("hello"), 10, 1.0, 0.1)
    assert len(split(shot, 4)) == 1
    assert len(split(replace(shot, load=Load(), connections=1), 4)) == 1


def test_the_sum_of_histograms_is_what_one_generator_would_have_written() -> None:
    from fake_load import encode_histogram

    first, second = [1_000, 70_000, 1_626_111], [50, 2_047, 2_048, 9_999_999_999]
    merged = Histogram.decode(encode_histogram(first))
    merged.merge(Histogram.decode(encode_histogram(second)))
    assert merged.encode() == encode_histogram([*first, *second])
    assert Histogram().encode() == encode_histogram([])


def test_records_of_different_kinds_are_not_joined() -> None:
    load = measurement()["load"] | {"schema": 1}
    with pytest.raises(LoadError, match="differ in schema: 1, 2"):
        merging.joined([load, load | {"schema": 2}], [0, 0])


def figure_of(records: list[dict[str, Any]]) -> figures.Figure:
    return analyse.analyse(results(records)).figures[SECTION, "hello", "a"]


# --- limits ---------------------------------------------------------------------------------------


def reading(at_s: float = 0.0, **changes: int) -> dict[str, Any]:
    device = dict.fromkeys(network.DEVICE, 0) | {"mbit": 1000}
    device |= {name: value for name, value in changes.items() if name in device}
    others = {"tracked": 10, "tracked_max": 1000, "untracked": 0, "backlog_dropped": 0}
    others |= {name: value for name, value in changes.items() if name in others}
    allowances = {name: value for name, value in changes.items() if name.endswith("_exceeded")}
    return {"at_s": at_s, "devices": {"eth0": device | allowances}, **others}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tx_bytes": 119_000_000}, "bandwidth of eth0: tx 952 of 1000 Mbit/s"),
        ({"rx_bytes": 10_000_000}, ""),
        ({"rx_packets": 90_000, "rx_dropped": 900}, "packets per second of eth0: 900 dropped"),
        ({"rx_packets": 90_000, "backlog_dropped": 400}, "400 dropped by full queues"),
        ({"tracked": 980}, "connection tracking: 980 of 1000 entries"),
        ({"untracked": 3}, "connection tracking: 3 packets dropped"),
        ({"pps_allowance_exceeded": 5}, "pps allowance of eth0: exceeded 5 times"),
    ],
)
def test_limits_of_the_network_are_recognised(changes: dict[str, int], said: str) -> None:
    found = network.limits(network.between(reading(), reading(1.0, **changes)))
    assert (said in found[0]) if said else found == []


def test_a_link_that_only_the_person_knows() -> None:
    found = network.between(reading(), reading(1.0, tx_bytes=1_200_000))
    assert network.limits(found) == []
    assert "9.6" not in network.limits(found, link_mbit=10)[0]
    assert "tx 10 of 10 Mbit/s" in network.limits(found, link_mbit=10)[0]


def test_the_verdict_says_that_it_was_the_network() -> None:
    records = [measurement(round_=number) for number in range(3)]
    for entry in records:
        entry["usage"] |= {
            "server_share": 0.3,
            "server_cpus_idle_share": 0.7,
            "generator_share": 0.2,
        }
        entry["network_limits"] = ["tcp://w1: bandwidth of eth0: tx 952 of 1000 Mbit/s"]
    figure = figure_of(records)
    assert figure.limiter == verdict.NETWORK
    assert any("bandwidth of eth0" in str(reason) for reason in figure.verdict.reasons)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cpu_share": 0.95}, "a generator had no CPU time left: w2: 95%"),
        ({"cpu_idle_share": 0.01}, "a generator's machine was busy: w2: 1% idle"),
        ({"steal_share": 0.2}, "took CPU time from a generator: w2: 20%"),
        ({"lag_p99_us": 9000.0}, "a generator kept its schedule badly: w2: p99 9.0 ms late"),
        ({"late_us": 30_000.0}, "generators did not begin together: w2: +30.0 ms"),
    ],
)
def test_each_generator_is_judged(changes: dict[str, float], said: str) -> None:
    good = {
        "cpu_share": 0.3, "cpu_idle_share": 0.6, "steal_share": 0.0, "lag_p99_us": 50.0, "late_us": 3.0,
        "latency_p99_us": 900.0,
    }  # fmt: skip
    records = [measurement(round_=number) for number in range(3)]
    for entry in records:
        entry["generators"] = [{"worker": "w1", **good}, {"worker": "w2", **good, **changes}]
    assert any(said in str(reason) for reason in figure_of(records).verdict.reasons)
    for entry in records:
        entry["generators"] = [{"worker": "w1", **good}]
    assert figure_of(records).verdict.word == figures.VALID
