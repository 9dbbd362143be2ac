"""What the clients of databases add to the wheel, and to a worker: `clients.py [--sizes]`.

The first table counts the machine code of each client in the release extension of this checkout, by the
names of its functions (binutils' nm and readelf), and the Python files of its package; both also as a wheel
compresses them. Code that the compiler inlined into other functions, and constants, are not in it. More than
500 kB of all of it, compressed, is a failure. With `--sizes` that is all.

The second one starts a worker with one route, which imports neither client, one of them, or both: the time
to the first response (median of 11) and the proportional set size after 100 requests.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path

from install import STARTS, Contender, memory_mb, start_ms

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "citius"
# Beside its own crates and modules a client has those that it alone uses.
CODE = {
    "pg": ("citius_pg::", "citius_clients::pg::", "postgres_protocol::"),
    "redis": ("citius_redis::", "citius_clients::redis::"),
}
# What the project promises of them.
WHEEL_BYTES_MAX = 500_000
APPLICATION = """
{imports}
from citius import App

app = App()

@app.get("/")
def hello() -> str:
    return "Hello, world!"
"""


def code(extension: Path) -> dict[str, bytes]:
    """Return the machine code of each client."""
    sections = subprocess.check_output(["readelf", "-SW", extension], text=True)
    found = re.search(r"\.text\s+PROGBITS\s+(\w+)\s+(\w+)\s+(\w+)", sections)
    assert found is not None, sections
    address, offset, size = (int(number, 16) for number in found.groups())
    text = extension.read_bytes()[offset : offset + size]
    symbols = subprocess.check_output(["nm", "-S", "-C", "--defined-only", extension], text=True)
    # Functions that are alike are one piece of code with several names.
    places: dict[int, tuple[int, str]] = {}
    for line in symbols.splitlines():
        if symbol := re.match(r"(\w{16}) (\w{16}) [tT] (.*)", line):
            places[int(symbol[1], 16) - address] = (int(symbol[2], 16), symbol[3])
    found_code: dict[str, bytes] = {}
    for client, modules in CODE.items():
        parts = dict.fromkeys(modules, b"")
        for at, (length, name) in places.items():
            if module := next((one for one in modules if one in name), None):
                parts[module] += text[at : at + length]
        assert all(parts.values()), f"{extension} has no function of one of {modules}"
        found_code[client] = b"".join(parts.values())
    return found_code


def print_sizes() -> None:
    """Print the first table.

    Raises:
        SystemExit: The clients are larger than promised.
    """
    extension = PACKAGE / f"_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    print("| kB, and compressed | machine code | | Python | |\n|---|---:|---:|---:|---:|")
    whole = 0
    for client, machine_code in code(extension).items():
        files = b"".join(file.read_bytes() for file in sorted((PACKAGE / client).rglob("*.py")))
        cells = [f"citius.{client}"]
        for data in (machine_code, files):
            compressed = len(zlib.compress(data, 9))
            whole += compressed
            cells += [f"{len(data) / 1e3:.0f}", f"{compressed / 1e3:.0f}"]
        print(f"| {' | '.join(cells)} |")
    if whole > WHEEL_BYTES_MAX:
        sys.exit(f"clients: {whole} bytes of the wheel are more than {WHEEL_BYTES_MAX}")


def print_workers() -> None:
    """Print the second table."""
    print("| imports | first response, ms | memory, MB |\n|---|---:|---:|")
    for clients in ((), ("pg",), ("redis",), ("pg", "redis")):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "venv").symlink_to(ROOT / ".venv")
            imports = "\n".join(f"import citius.{client}" for client in clients)
            (folder / "one.py").write_text(APPLICATION.format(imports=imports))
            server = Contender("", "citius", (), ("citius", "serve", "one:app", "--no-access-log"))
            start_ms(server, folder)
            start = statistics.median(start_ms(server, folder) for _ in range(STARTS))
            memory = memory_mb(server, folder, workers=1)
        print(f"| {' and '.join(clients) or 'neither'} | {start:.0f} | {memory:.1f} |")


if __name__ == "__main__":
    print_sizes()
    if "--sizes" not in sys.argv:
        print()
        print_workers()
