"""Counters of all workers on one page, by Prometheus' own parsers."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from rig import application, wait_for

APP = application("metrics_app")


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("openmetrics", [False, True])
def test_what_is_counted(manage, workers: str, openmetrics: bool) -> None:
    managed = manage(APP, "-w", workers, "--no-access-log")
    server = managed.server
    for _ in range(20):
        assert server.get("/items/7").status == 200
    assert server.get("/boom").status == 500
    assert server.get("/nowhere").status == 404
    with server.connect() as peer:
        peer.send(b"GET / HTTP/1.1\r\n\r\n")
        assert b"400 Bad Request" in peer.read_to_end()
    found = managed.metrics_after(23, openmetrics=openmetrics)
    requests = "citius_http_requests_total{method=GET,route=%s,status=%s}"
    assert found[requests % ("/items/{id:int}", "2xx")] == 20
    assert found[requests % ("/boom", "5xx")] == 1
    assert found[requests % ("", "4xx")] == 1
    assert found["citius_http_responses_total{code=400}"] == 1
    assert found["citius_http_request_duration_seconds_count{route=/items/{id:int}}"] == 20
    assert found["citius_http_request_duration_seconds_sum{route=/items/{id:int}}"] > 0
    assert found["citius_faults_total{fault=host_missing}"] == 1
    assert found["citius_handler_exceptions_total"] == 1
    assert found["citius_connections_accepted_total"] == 23
    assert found["citius_received_bytes_total"] > 23 * 18
    assert found["citius_sent_bytes_total"] > 23 * 50
    assert found["citius_workers{state=ready}"] == int(workers)
    resident = [v for k, v in found.items() if k.startswith("citius_worker_resident_memory")]
    assert len(resident) == int(workers)
    assert min(resident) > 1_000_000


def test_cpu_time_does_not_fall_when_a_worker_is_replaced(manage) -> None:
    managed = manage(APP, "-w", "1", "--supervisor", "--no-access-log")
    managed.wait_ready()
    victim = int(managed.server.get("/burn").body)

    def cpu_s() -> float:
        found = managed.metrics()
        return sum(v for k, v in found.items() if k.startswith("citius_worker_cpu_seconds_total"))

    wait_for(lambda: cpu_s() > 1.5, "CPU time")
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: managed.metrics()["citius_worker_restarts_total{reason=died}"] == 1, "a death")
    managed.wait_ready()
    assert cpu_s() > 1.5


def test_a_dead_workers_counters_are_kept(manage) -> None:
    managed = manage(APP, "-w", "2", "--no-access-log")
    managed.wait_ready()
    victim = int(managed.server.get("/pid").body)
    for _ in range(50):
        managed.server.get("/")
    before = managed.metrics_after(51)
    key = "citius_http_requests_total{method=GET,route=/,status=2xx}"
    assert before[key] == 50
    os.kill(victim, signal.SIGKILL)
    wait_for(lambda: managed.metrics()["citius_worker_restarts_total{reason=died}"] == 1, "a death")
    managed.wait_ready()
    after = managed.metrics()
    assert after[key] == 50
    assert after["citius_workers{state=ready}"] == 2
    managed.server.get("/")
    assert managed.metrics_after(52)[key] == 51


def test_a_rolling_restart_loses_no_count(manage) -> None:
    managed = manage(APP, "-w", "2", "--no-access-log")
    managed.wait_ready()
    for _ in range(10):
        managed.server.get("/")
    managed.server.signal(signal.SIGHUP)
    managed.server.wait_for_log("all workers are new")
    found = managed.metrics_after(10)
    assert found["citius_http_requests_total{method=GET,route=/,status=2xx}"] == 10
    assert found["citius_worker_restarts_total{reason=asked}"] == 2


def test_scraped_under_load(manage) -> None:
    managed = manage(APP, "-w", "2", "--no-access-log")
    managed.wait_ready()
    stop, sent = threading.Event(), [0, 0, 0]

    def load(index: int) -> None:
        with managed.server.connect() as peer:
            while not stop.is_set():
                assert peer.request("GET", "/").status == 200
                sent[index] += 1

    threads = [threading.Thread(target=load, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    key = "citius_http_requests_total{method=GET,route=/,status=2xx}"
    seen = [managed.metrics().get(key, 0.0) for _ in range(30)]
    stop.set()
    for thread in threads:
        thread.join()
    assert seen == sorted(seen)
    assert managed.metrics_after(sum(sent))[key] == sum(sent) > 0


def test_a_hung_worker_does_not_hang_the_page(manage) -> None:
    managed = manage(APP, "-w", "2", "--no-access-log", "--worker-timeout-s", "0")
    managed.wait_ready()
    with managed.server.connect() as peer:
        peer.send(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: managed.metrics(), "metrics")
        assert managed.ask("/live")[0] == 200


def test_limits_and_queue(manage) -> None:
    managed = manage(
        APP, "--blocking-threads", "1", "--limit-concurrency", "3", "--head-bytes-max", "9000",
        "--no-access-log",
    )  # fmt: skip
    server = managed.server
    with server.connect() as one, server.connect() as two, server.connect() as three:
        for peer in (one, two, three):
            peer.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        opened = "citius_http_requests_open{worker=0}"
        wait_for(lambda: managed.metrics()[opened] == 3, "three requests")
        assert server.get("/").status == 503
        with server.connect() as peer:
            peer.send(b"GET / HTTP/1.1\r\nHost: a\r\nx: " + b"y" * 9000)
            assert b" 431 " in peer.read_to_end()
        length = "citius_blocking_queue_length{worker=0}"
        wait_for(lambda: managed.metrics()[length] == 2, "a queue")
        found = managed.metrics()
        assert found["citius_blocking_queue_age_seconds{worker=0}"] > 0
        assert found["citius_limit_hits_total{limit=requests_open_max}"] == 1
        assert found["citius_limit_hits_total{limit=head_bytes_max}"] == 1
        assert found["citius_connections_open{worker=0}"] >= 3
    cancelled = "citius_http_requests_cancelled_total"
    wait_for(lambda: managed.metrics()[cancelled] == 3, "three that left")
    wait_for(
        lambda: managed.metrics().get("citius_http_responses_total{code=499}") == 3, "three 499"
    )


def test_deferred_calls_are_counted_while_they_wait_or_run(manage) -> None:
    managed = manage(APP, "--no-access-log")
    calls = "citius_deferred_calls{worker=0}"
    managed.wait_ready()
    assert managed.metrics()[calls] == 0
    for _ in range(12):  # more than there are threads for them
        managed.server.get("/defer?seconds=2")
    wait_for(lambda: managed.metrics()[calls] == 12, "12 deferred calls")
    wait_for(lambda: managed.metrics()[calls] == 0, "no deferred call")


def test_the_workers_do_not_hold_the_management_socket(manage) -> None:
    managed = manage(APP, "-w", "2", "--no-access-log")
    managed.wait_ready()
    with open("/proc/net/tcp") as file:
        rows = [line.split() for line in file]
    inode = next(r[9] for r in rows if r[1].endswith(f":{managed.port:04X}") and r[3] == "0A")
    held: dict[int, bool] = {}
    for worker in (managed.server.process.pid, *(w["pid"] for w in managed.ready()[1]["workers"])):
        links = (os.readlink(f"/proc/{worker}/fd/{fd}") for fd in os.listdir(f"/proc/{worker}/fd"))
        held[worker] = f"socket:[{inode}]" in links
    assert list(held.values()) == [True, False, False]


def test_a_taken_management_port_is_a_clear_error(manage, serve) -> None:
    managed = manage(APP)
    for workers in ("1", "2"):
        other = serve(APP, "--management", f"127.0.0.1:{managed.port}", "-w", workers, ready=False)
        assert other.wait() == 3
        assert f"cannot listen on 127.0.0.1:{managed.port}" in other.err
