"""What PostgreSQL takes for the statement of the workload db-rows by its ways to plan it: `measure_plans.py`.

A server with the tables of `lab/workloads/db.sql`, asked by pgbench on one connection, prepared.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile

from lab_database import lab_database

STATEMENT = """\\set low random(1, 900)
\\set high :low + 9
SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count
FROM items WHERE price BETWEEN :low AND :high LIMIT 20;
"""


def main() -> None:
    """Measure, and print a table."""
    with lab_database() as (url, binaries):
        print("| plan_cache_mode | µs per statement |\n|---|---:|")
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
            script.write(STATEMENT)
            script.flush()
            words = [
                str(binaries / "pgbench"),
                "-n",
                "-M",
                "prepared",
                "-T",
                "4",
                "-f",
                script.name,
            ]
            for mode in ("auto", "force_custom_plan", "force_generic_plan"):
                said = subprocess.check_output(
                    [*words, url],
                    env=os.environ | {"PGOPTIONS": f"-c plan_cache_mode={mode}"},
                    text=True,
                )
                latency = re.search(r"latency average = ([\d.]+) ms", said)
                assert latency is not None, said
                print(f"| {mode} | {float(latency[1]) * 1000:.0f} |", flush=True)


if __name__ == "__main__":
    main()
