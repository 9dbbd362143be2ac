"""deploy/cluster.yaml: its application is served with its arguments, and its times fit one another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from rig import Server, wait_for

ROOT = Path(__file__).parents[2]
DOCUMENTS: list[dict[str, Any]] = list(
    yaml.safe_load_all((ROOT / "deploy/cluster.yaml").read_text())
)


def one(kind: str, name: str) -> dict[str, Any]:
    (found,) = [d for d in DOCUMENTS if (d["kind"], d["metadata"]["name"]) == (kind, name)]
    return found


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = one("Deployment", "chat")["spec"]["template"]["spec"]
    return spec


def option(name: str) -> str:
    args = pod()["containers"][0]["args"]
    return str(args[args.index(name) + 1])


def test_what_is_selected_is_there() -> None:
    for document in DOCUMENTS:
        selector = document["spec"].get("selector", {})
        labels = selector.get("matchLabels", selector)
        made = [
            d["spec"]["template"]["metadata"]["labels"]
            for d in DOCUMENTS
            if "template" in d["spec"]
        ]
        assert labels in made, document["metadata"]["name"]
    ports = [port["name"] for port in pod()["containers"][0]["ports"]]
    assert one("Service", "chat")["spec"]["ports"][0]["targetPort"] in ports


def test_no_request_is_lost_by_the_times() -> None:
    """A pod is not killed before it has drained, and gets nothing new when it drains."""
    strategy = one("Deployment", "chat")["spec"]["strategy"]["rollingUpdate"]
    assert strategy["maxUnavailable"] == 0
    delay_s, drain_s = float(option("--drain-delay-s")), float(option("--drain-s"))
    assert pod()["terminationGracePeriodSeconds"] > delay_s + drain_s
    probe = pod()["containers"][0]["readinessProbe"]
    # Three failures in a row are what Kubernetes asks for, where a manifest does not say.
    assert delay_s > probe["periodSeconds"] * probe.get("failureThreshold", 3)


def test_its_arguments_serve_and_its_probes_are_answered(serve: Callable[..., Server]) -> None:
    container = pod()["containers"][0]
    application, *options = container["args"]
    module, _, name = application.partition(":")
    at = {"--bind": "127.0.0.1:0", "--management": "127.0.0.1:0", "--drain-delay-s": "1"}
    words = [at.get(before, word) for before, word in zip(["", *options], options, strict=False)]
    environment = {entry["name"] for entry in container["env"]}
    assert {"CLUSTER", "CLUSTER_SECRET"} <= environment
    source = (ROOT / "examples/cluster" / f"{module}.py").read_text()
    assert all(f'"{wanted}"' in source for wanted in ("CLUSTER", "CLUSTER_SECRET"))
    server = serve(
        ROOT / "examples/cluster" / f"{module}.py", *words, env={"CLUSTER": "workers://"}
    )
    assert name == "app"
    ready = container["readinessProbe"]["httpGet"]["path"]
    alive = container["livenessProbe"]["httpGet"]["path"]
    assert (server.get(ready).status, server.get(alive).status) == (200, 200)
    server.process.terminate()
    wait_for(lambda: server.get(ready).status == 503, "no readiness")
    assert server.get(alive).status == 200
    assert server.process.wait(60) == 0
