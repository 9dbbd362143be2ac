"""Runs gRPC's interop client, an outside judge, against a service that `citius serve` has mounted.

grpc_interop.py TOOLS: a directory with grpc-go's interop client (`interop-client`), the environment of
requirements/connect.lock and what `buf` has made of the service there. All cases of the client run, with one
worker and with two, but those that need accounts of a cloud.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "grpc_interop"

CASES = (
    "empty_unary", "large_unary", "client_streaming", "server_streaming", "ping_pong", "empty_stream",
    "timeout_on_sleeping_server", "cancel_after_begin", "cancel_after_first_response",
    "status_code_and_message", "special_status_message", "custom_metadata", "unimplemented_method",
    "unimplemented_service", "pick_first_unary", "rpc_soak", "channel_soak",
)  # fmt: skip
LEFT_OUT = {
    "accounts of a cloud": (
        "compute_engine_creds", "service_account_creds", "jwt_token_creds", "per_rpc_creds",
        "oauth2_auth_token", "google_default_credentials", "compute_engine_channel_credentials",
    ),
    "reports of load, which are an extension for load balancers": ("orca_per_rpc", "orca_oob"),
}  # fmt: skip
"""The other cases of the client, and what they need."""
WORKERS = (1, 2)


def judge(tools: Path, port: str) -> list[str]:
    """The cases that fail."""
    failed: list[str] = []
    for case in CASES:
        done = subprocess.run(
            [tools / "interop-client", "--server_host", "127.0.0.1", "--server_port", port,
             "--test_case", case, "--soak_iterations", "20"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
        )  # fmt: skip
        if done.returncode:
            failed.append(case)
            print(f"{case}:\n{done.stdout[-2000:]}")
    return failed


def check_cases(source: str) -> list[str]:
    """The cases of the client that are neither run nor left out."""
    known = {*CASES, *(case for cases in LEFT_OUT.values() for case in cases)}
    return sorted(set(re.findall(r'case "(\w+)":', source)) - known)


def main() -> int:
    """Exit code 0: all cases pass."""
    tools = Path(sys.argv[1]).absolute()
    unknown = check_cases((tools / "interop-client.go").read_text())
    for case in unknown:
        print(f"the client has the case {case}, which is neither run nor left out")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, tools)))}
    failed = list(unknown)
    for workers in WORKERS:
        with tempfile.TemporaryDirectory() as directory:
            server = subprocess.Popen(
                [tools / "environment/bin/python", "-m", "citius", "serve", "service:app", "--port", "0",
                 "--no-access-log", "--workers", str(workers)],
                cwd=directory, env=env, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                assert server.stderr is not None
                found = next(
                    (
                        one
                        for line in server.stderr
                        if (one := re.search(r"serves on \S+:(\d+)", line))
                    ),
                    None,
                )
                if found is None:
                    print(f"the server ended with {server.wait()}")
                    return 1
                failed += judge(tools, found[1])
            finally:
                server.terminate()
                server.wait(20)
        print(
            f"{workers} worker{'s' * (workers > 1)}: {len(CASES)} cases, failed: {failed or 'none'}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
