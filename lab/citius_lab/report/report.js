// Sorts a table by the column whose heading is clicked: least first, then most first, then as it was.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  if (rows.length < 2) continue;
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: null }[heading.ariaSort] ?? (heading.ariaSort ? null : "ascending");
      for (const other of headings) other.ariaSort = null;
      heading.ariaSort = next;
      body.append(...(next === null ? rows : sorted(rows, column, next === "ascending" ? 1 : -1)));
      table.classList.toggle("sorted", next !== null);
    });
  });
}

function sorted(rows, column, direction) {
  const keys = new Map(rows.map((row) => [row, key(row.cells[column])]));
  return [...rows].sort((one, other) => {
    const [a, b] = [keys.get(one), keys.get(other)];
    // What has no value stays at the end, whichever way the others go.
    if (a === "" || b === "") return (a === "") - (b === "");
    return direction * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  });
}

function key(cell) {
  if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
  const text = cell.textContent.trim();
  return text === "\u2013" ? "" : text;
}
