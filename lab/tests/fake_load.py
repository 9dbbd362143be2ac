"""A load generator with the real one's interface, as far as the lab uses it: a closed loop."""

import argparse
import asyncio
import base64
import json
import struct
import sys
import time
import urllib.parse
import zlib


def encode_histogram(values_ns):
    """Encode values as a V2 deflated HdrHistogram of three digits, as the real generator does."""
    counts = {}
    for value in values_ns:
        counts[index_of(value)] = counts.get(index_of(value), 0) + 1
    payload, index = b"", 0
    for wanted in sorted(counts):
        if wanted > index:
            payload += zigzag(index - wanted)
        payload += zigzag(counts[wanted])
        index = wanted + 1
    head = struct.pack(">iiiiqqd", 0x1C849303 | 0x10, len(payload), 0, 3, 1, 3600 * 10**9, 1.0)
    packed = zlib.compress(head + payload)
    return base64.b64encode(struct.pack(">ii", 0x1C849304 | 0x10, len(packed)) + packed).decode()


def index_of(value):
    """Return the counts index of a value: 2048 sub-buckets, halves of them beyond the first."""
    bucket = max(0, value.bit_length() - 11)
    return ((bucket + 1) << 10) + (value >> bucket) - 1024


def zigzag(number):
    number = (number << 1) ^ (number >> 63)
    number &= (1 << 64) - 1
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


class Tally:
    def __init__(self, expected):
        self.expected = expected
        self.counting = False
        self.latencies = []
        self.errors = dict.fromkeys(
            ("connect", "timeout", "reset", "short", "status", "length", "content", "protocol"), 0
        )

    def count(self, status, body, latency_ns):
        if not self.counting:
            return
        if status != 200:
            self.errors["status"] += 1
        elif body != self.expected:
            self.errors["content"] += 1
        else:
            self.latencies.append(latency_ns)


async def connection(url, depth, tally):
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    target = url.path + ("?" + url.query if url.query else "")
    request = f"GET {target} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n".encode()
    try:
        while True:
            started = time.perf_counter_ns()
            writer.write(request * depth)
            for _ in range(depth):
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split()[0])
                body = await reader.readexactly(length)
                tally.count(int(head.split()[1]), body, time.perf_counter_ns() - started)
    except (ConnectionError, asyncio.IncompleteReadError):
        tally.errors["reset"] += tally.counting
    finally:
        writer.close()


def event(name):
    print(json.dumps({"event": name}), file=sys.stderr, flush=True)


async def main():
    parser = argparse.ArgumentParser()
    for name in ("connections", "threads", "pipeline", "check-every", "expect-status"):
        parser.add_argument(f"--{name}", type=int, default=1)
    for name in ("warmup", "duration", "timeout", "cpus", "json", "expect-body-file"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--events", action="store_true")
    parser.add_argument("url", type=urllib.parse.urlsplit)
    options = parser.parse_args()
    with open(options.expect_body_file, "rb") as file:
        tally = Tally(file.read())
    tasks = [
        asyncio.create_task(connection(options.url, options.pipeline, tally))
        for _ in range(options.connections)
    ]
    await asyncio.sleep(float(options.warmup.rstrip("s")))
    event("begin")
    tally.counting, began, cpu = True, time.perf_counter(), time.process_time()
    ends = began + float(options.duration.rstrip("s"))
    steps, before = [], 0
    while (now := time.perf_counter()) < ends:
        await asyncio.sleep(min(0.1, ends - now))
        steps.append({"at_s": now - began, "completed": len(tally.latencies) - before, "errors": 0})
        before = len(tally.latencies)
    tally.counting, elapsed_s = False, time.perf_counter() - began
    cpu_s = time.process_time() - cpu
    event("end")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with open(options.json, "w") as file:
        json.dump({**record(tally, elapsed_s, cpu_s), "intervals": steps}, file)


def record(tally, elapsed_s, cpu_s):
    completed = len(tally.latencies)
    mean = sum(tally.latencies) / completed / 1e3 if completed else None
    return {
        "schema": 1,
        "tool": "fake-load",
        "version": "0",
        "interrupted": False,
        "elapsed_s": elapsed_s,
        "completed": completed,
        "errors": tally.errors,
        "requests_per_s": completed / elapsed_s,
        "latency_us": {"mean": mean, "count": completed},
        "latency_histogram": encode_histogram(tally.latencies),
        "cpu_s": {"user": cpu_s, "system": 0.0},
        "cpu_us_per_request": cpu_s * 1e6 / completed if completed else None,
    }


if __name__ == "__main__":
    asyncio.run(main())
