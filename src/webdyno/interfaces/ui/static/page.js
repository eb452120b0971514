"use strict";

function all(selector) { return Array.from(document.querySelectorAll(selector)); }

// Verdicts take a moment each: they are asked for one after the other, once the list is there.
async function verdicts() {
  for (const place of all("[data-verdict]")) {
    try {
      const told = await (await fetch(place.dataset.verdict)).json();
      place.replaceChildren(...told.verdicts.map((it) => element("span", `${it.sign} ${it.word}`, `mark ${it.word}`)));
      place.closest("tr").querySelector("[data-headline]").textContent = told.headline;
    } catch {
      place.textContent = "can't be judged";
    }
    filter();
  }
}

function filter() {
  const field = document.getElementById("filter");
  if (!field) return;
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of all("#runs tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
}

function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text ?? "";
  if (className) made.className = className;
  return made;
}

// The interval on a scale that shrinks with it; the band is as wide as it may be for the run to stop.
function scale(point) {
  const widest = Math.max(point.half_width, 3 * point.wanted_half_width);
  const box = element("div", "", "scale");
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", `precision ±${point.known}, target ±${point.wanted}`);
  for (const [name, half] of [["wanted", point.wanted_half_width], ["interval", point.half_width]]) {
    const part = element("span", "", name);
    part.style.left = `${50 - (50 * half) / widest}%`;
    part.style.width = `${(100 * half) / widest}%`;
    box.append(part);
  }
  box.append(element("span", "", "center"));
  return box;
}

function progress(point) {
  const bar = element("progress");
  bar.max = point.expected;
  bar.value = point.rounds;
  bar.setAttribute("aria-label", "rounds measured, of those expected");
  return bar;
}

function shown(point) {
  const part = element("div", "", "part");
  const rounds = point.expected ? `${point.rounds} of about ${point.expected} rounds, ${point.left} left` : `${point.rounds} rounds`;
  part.append(element("p", [point.label, rounds].filter(Boolean).join(" · ")));
  if (point.expected) part.append(progress(point));
  for (const ratio of point.ratios ?? []) part.append(element("p", ratio, "now"));
  if (point.known) {
    part.append(scale(point));
    part.append(element("p", `precision ±${point.known}, target ±${point.wanted}`, "soft small"));
  }
  if (point.excluded) part.append(element("p", `slots excluded: ${point.excluded}`, "excluded small"));
  return part;
}

function follow(place) {
  const source = new EventSource(place.dataset.events);
  source.onmessage = (event) => {
    const told = JSON.parse(event.data);
    if (!told.running) {
      source.close();
      location.href = place.dataset.report;
      return;
    }
    document.getElementById("doing").textContent = told.doing;
    document.getElementById("points").replaceChildren(...told.points.map(shown));
  };
}

document.getElementById("filter")?.addEventListener("input", filter);
all("[data-events]").forEach(follow);
all("[data-reload]").forEach((place) => setTimeout(() => location.reload(), Number(place.dataset.reload)));
verdicts();
