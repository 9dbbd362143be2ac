"""Writes LICENSE-THIRD-PARTY for both distributions: the crates in their wheels, and their licences.

Texts are those of the crates' sources in cargo's registry; equal texts are there once. The bill of
materials of each distribution goes to target/sbom, in CycloneDX's format: it names no time and no path
of this machine, so that the same commit gives the same bytes.
"""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "LICENSE-THIRD-PARTY"
LAB_COPY = ROOT / "lab" / "LICENSE-THIRD-PARTY"
SBOMS = ROOT / "target" / "sbom"
# What is compiled into the wheels: the extension, and the load generator.
ROOTS = {"Cargo.toml": "citius-py", "lab/load/Cargo.toml": "citius-load"}
DISTRIBUTIONS = {"Cargo.toml": "citius", "lab/load/Cargo.toml": "citius-lab"}


def main() -> None:
    """Write the files."""
    SBOMS.mkdir(parents=True, exist_ok=True)
    crates: dict[str, dict[str, Any]] = {}
    for manifest, distribution in DISTRIBUTIONS.items():
        found = sorted(linked(manifest), key=by_name)
        crates |= {crate["id"]: crate for crate in found}
        bill = json.dumps(bill_of_materials(distribution, found), indent=1) + "\n"
        (SBOMS / f"{distribution}.cdx.json").write_text(bill)
    text = page(sorted(crates.values(), key=by_name))
    TARGET.write_text(text)
    LAB_COPY.write_text(text)


def linked(manifest: str) -> list[dict[str, Any]]:
    """Return the crates of others that are linked into what `manifest` builds."""
    command = ["cargo", "metadata", "--locked", "--format-version=1", "--manifest-path", manifest]
    told = subprocess.run(
        [*command, "--filter-platform", "x86_64-unknown-linux-gnu"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    metadata = json.loads(told.stdout)
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    (root,) = (key for key, package in packages.items() if package["name"] == ROOTS[manifest])
    found: set[str] = set()
    waiting = [root]
    while waiting:
        key = waiting.pop()
        if key in found or is_proc_macro(packages[key]):
            continue
        found.add(key)
        waiting += [
            dependency["pkg"]
            for dependency in nodes[key]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    return [packages[key] for key in found if packages[key]["source"]]


def by_name(crate: dict[str, Any]) -> tuple[str, str]:
    """Return what crates are sorted by."""
    return crate["name"], crate["version"]


def bill_of_materials(distribution: str, crates: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the crates of a distribution as CycloneDX lists components."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    version = workspace["package"]["version"]
    name = f"pkg:pypi/{distribution}@{version}"
    components = [
        {
            "type": "library",
            "bom-ref": f"pkg:cargo/{crate['name']}@{crate['version']}",
            "name": crate["name"],
            "version": crate["version"],
            "licenses": [{"expression": re.sub(r" ?/ ?", " OR ", crate["license"])}],
            "purl": f"pkg:cargo/{crate['name']}@{crate['version']}",
        }
        for crate in crates
    ]
    main_component = {
        "type": "library",
        "bom-ref": name,
        "name": distribution,
        "version": version,
        "purl": name,
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": main_component},
        "components": components,
        "dependencies": [{"ref": name, "dependsOn": [part["bom-ref"] for part in components]}],
    }


def is_proc_macro(package: dict[str, Any]) -> bool:
    """Tell whether it runs in the compiler and is in no wheel."""
    return any("proc-macro" in target["kind"] for target in package["targets"])


def page(crates: list[dict[str, Any]]) -> str:
    """Return the table and the texts."""
    lines = ["Citius contains the crates below, each under its licence; the texts follow.", ""]
    texts: dict[str, list[str]] = {}
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        lines.append(f"{name}: {crate['license']}")
        for path in sorted(Path(crate["manifest_path"]).parent.iterdir()):
            if re.match(r"(?i)(licen[cs]e|copying|notice|unlicense)", path.name) and path.is_file():
                text = path.read_text(errors="replace").strip()
                if is_needed(path.name, crate["license"]):
                    texts.setdefault(text, []).append(name)
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        lines += ["", "-" * 80, ", ".join(dict.fromkeys(names)), "", text]
    return "\n".join(lines) + "\n"


def is_needed(file: str, licence: str) -> bool:
    """Tell whether a text is of the licence that is taken: MIT wherever a crate offers it."""
    offers_mit = "MIT" in licence and " AND " not in licence
    return not (offers_mit and re.search(r"(?i)apache|unlicense|zlib|boost|0bsd", file))


if __name__ == "__main__":
    main()
