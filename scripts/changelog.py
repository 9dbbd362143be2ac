"""Makes a section of CHANGELOG.md of the files in changes/, and deletes them.

scripts/changelog.py 0.2.0      # the section of a release
scripts/changelog.py --check    # whether the names are right
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = {
    "added": "Added",
    "changed": "Changed",
    "faster": "Faster",
    "fixed": "Fixed",
    "removed": "Removed",
}


def fragments() -> dict[str, list[Path]]:
    """The files by their kind.

    Raises:
        SystemExit: The name of one says no kind, or it is empty.
    """
    found: dict[str, list[Path]] = {kind: [] for kind in KINDS}
    for path in sorted((ROOT / "changes").iterdir()):
        if path.name == "README.md":
            continue
        name, _, kind = path.name.removesuffix(".md").rpartition(".")
        if not name or kind not in found or path.suffix != ".md":
            raise SystemExit(
                f"changes/{path.name}: NAME.KIND.md, with KIND one of {', '.join(KINDS)}"
            )
        if not path.read_text().strip():
            raise SystemExit(f"changes/{path.name} is empty")
        found[kind].append(path)
    return found


def section(version: str, found: dict[str, list[Path]]) -> str:
    """The section of a version: a heading for each kind, a point for each file."""
    lines = [f"## {version} ({datetime.date.today().isoformat()})", ""]
    for kind, paths in found.items():
        if paths:
            lines += [f"### {KINDS[kind]}", ""]
            for path in paths:
                first, *rest = path.read_text().strip().splitlines()
                lines += [f"- {first}", *(f"  {line}".rstrip() for line in rest)]
            lines.append("")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Check, or write the section above that of the last version."""
    found = fragments()
    if sys.argv[1:] == ["--check"]:
        return
    if len(sys.argv) != 2 or not any(found.values()):
        raise SystemExit("usage: scripts/changelog.py VERSION, with files in changes/")
    page = ROOT / "CHANGELOG.md"
    before, mark, after = page.read_text().partition("\n## ")
    page.write_text(before + "\n" + section(sys.argv[1], found) + mark[1:] + after)
    for paths in found.values():
        for path in paths:
            path.unlink()


if __name__ == "__main__":
    main()
