"use strict";
// Charts are pictures. This says what the mark under the pointer is, and picks out variants.
const told = document.body.appendChild(document.createElement("div"));
told.className = "told";
told.hidden = true;

document.addEventListener("pointerover", (event) => {
  const mark = event.target.closest(".chart svg [data-told]");
  told.hidden = !mark;
  if (!mark) return;
  told.textContent = mark.dataset.told;
  const { left, top } = mark.getBoundingClientRect();
  const room = document.documentElement.clientWidth - told.offsetWidth - 8;
  told.style.left = `${Math.max(8, Math.min(left, room))}px`;
  told.style.top = `${Math.max(8, top - told.offsetHeight - 8)}px`;
});
document.addEventListener("scroll", () => (told.hidden = true), { passive: true });

function mark(figure, variant, look, on) {
  const colour = `"var(--${variant})"`;
  for (const it of figure.querySelectorAll(`.chart [fill=${colour}], .chart [stroke=${colour}]`)) {
    it.classList.toggle(look, on);
  }
}

for (const figure of document.querySelectorAll("figure")) {
  const buttons = figure.querySelectorAll("button[data-variant]");
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const pick = button.getAttribute("aria-pressed") === "false";
      for (const each of buttons) {
        each.setAttribute("aria-pressed", pick && each === button);
        mark(figure, each.dataset.variant, "muted", pick && each !== button);
      }
    });
  }
  figure.querySelectorAll("input[data-variant]").forEach((box) => {
    const show = () => mark(figure, box.dataset.variant, "unticked", !box.checked);
    box.addEventListener("change", show);
    show();
  });
}

// Tables that are sorted by the column whose heading is pressed.
const unitsInSeconds = { "µs": 1e-6, "ms": 1e-3, "min": 60, "h": 3600 };

function sortKey(cell) {
  const found = cell.textContent.replaceAll(",", "").match(/([\d.]+)\s*(µs|ms|min|h)?/);
  return found ? Number(found[1]) * (unitsInSeconds[found[2]] ?? 1) : null;
}

// Cells without a figure come last, whichever way the others are sorted.
function compareCells(a, b, isText, way) {
  if (isText) return way * a.textContent.localeCompare(b.textContent);
  const [first, second] = [sortKey(a), sortKey(b)];
  if (first === null || second === null) return (first === null) - (second === null);
  return way * (first - second);
}

for (const table of document.querySelectorAll("[data-sortable]")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const backwards = heading.getAttribute("aria-sort") === "ascending";
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", backwards ? "descending" : "ascending");
      for (const body of table.tBodies) {
        const rows = [...body.rows];
        const isText = !rows.some((row) => sortKey(row.cells[column]) !== null && !row.cells[column].matches("th"));
        const way = backwards ? -1 : 1;
        rows.sort((a, b) => compareCells(a.cells[column], b.cells[column], isText, way));
        body.append(...rows);
      }
    });
  });
}
