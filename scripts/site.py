"""Makes the documentation's web site: `make site`.

Pages lie below target/site-pages as they lie in the repository, so that their links are the same in both. A
link that leads nowhere, a page that the navigation of mkdocs.yml lacks, and a line `::: name` whose name does
not exist end the build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "target" / "site-pages"


def main() -> None:
    """Lay the pages out and make the site."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for file in tracked():
        if is_page(file) or is_linked(file):
            (PAGES / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, PAGES / file)
    for page in PAGES.rglob("*.md"):
        page.write_text(for_the_site(page))
    settings = ROOT / "target" / "mkdocs.yml"
    settings.write_text(with_absolute_paths((ROOT / "mkdocs.yml").read_text()))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(settings)],
        check=False, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    if done.returncode:
        sys.exit("site: mkdocs found what the lines above say")
    print(f"site: {len(list(PAGES.rglob('*.md')))} pages in {(ROOT / 'site').relative_to(ROOT)}/")


def tracked() -> list[str]:
    """Return the files of the repository, those that are new included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    if not (
        ROOT / ".git"
    ).exists():  # an archive of the source has what is in the repository, and what was built
        built = {"target", "site", "dist", "node_modules", "build"}
        places = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        return sorted(
            place.as_posix()
            for place in places
            if not any(part in built or part.startswith(".") for part in place.parts)
        )
    listed = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
    return [file for file in sorted(set(listed)) if (ROOT / file).exists()]


def is_page(file: str) -> bool:
    """Tell whether a file is a page of the site."""
    if not file.endswith(".md"):
        return False
    return "/" not in file or (
        file.startswith(("docs/", "examples/", "vectors/", "lab/")) and "contestants" not in file
    )


def is_linked(file: str) -> bool:
    """Tell whether pages show, or link to, a file that is no page."""
    shown = ("docs/pictures/", "docs/site.css", "examples/", "deploy/")
    return file == "LICENSE" or file.startswith(shown)


def for_the_site(page: Path) -> str:
    """Return a page with its links to what the site lacks as plain text, to directories as links to pages."""
    text = page.read_text()

    def mend(found: re.Match[str]) -> str:
        label, target = found[1], found[2]
        path, _, _ = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return found[0]
        linked = page.parent / path
        if linked.is_dir() and (linked / "README.md").is_file():
            return f"[{label}]({path.rstrip('/')}/README.md)"
        if linked.is_file():
            return found[0]
        if (ROOT / page.relative_to(PAGES).parent / path).exists():
            return label
        return found[0]

    return re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)", mend, text)


def with_absolute_paths(settings: str) -> str:
    """Return mkdocs.yml with paths that hold below target/."""
    settings = settings.replace("docs_dir: target/site-pages", f"docs_dir: {PAGES}")
    settings = settings.replace("site_dir: site", f"site_dir: {ROOT / 'site'}")
    settings = settings.replace("paths: [python]", f"paths: [{ROOT / 'python'}]")
    return settings.replace("[scripts/griffe_", f"[{ROOT}/scripts/griffe_")


if __name__ == "__main__":
    main()
