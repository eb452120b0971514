"use strict";

function all(selector) { return Array.from(document.querySelectorAll(selector)); }

// Verdicts take a moment each: they are asked for one after the other, once the list is there.
async function verdicts() {
  for (const place of all("[data-verdict]")) {
    try {
      const told = await (await fetch(place.dataset.verdict)).json();
      place.replaceChildren(element("span", told.said, `mark ${told.tone}`));
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

const NAMESPACE = "http://www.w3.org/2000/svg";

function drawn(parent, name, attributes, text) {
  const made = parent.appendChild(document.createElementNS(NAMESPACE, name));
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Each round's ratio as a dot, the interval so far as a band; upright a log scale, so that twice
// and half are as far from 1.
function chart(curve, expected) {
  const [height, left, below] = [170, 52, 24];
  const width = Math.min(640, document.getElementById("points").clientWidth);
  const ratios = [...curve.rounds, curve.low, curve.high, 1].filter((it) => it > 0);
  const room = 0.06 + 0.1 * Math.log(Math.max(...ratios) / Math.min(...ratios));
  const [low, high] = [Math.log(Math.min(...ratios)) - room, Math.log(Math.max(...ratios)) + room];
  const rounds = Math.max(expected ?? 0, curve.rounds.length, 6);
  const x = (round) => left + ((width - left - 8) * (round - 0.5)) / rounds;
  const y = (ratio) => ((height - below) * (high - Math.log(ratio))) / (high - low);
  const svg = document.createElementNS(NAMESPACE, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${curve.name}: ${curve.rounds.length} rounds, ${curve.told}`);
  drawn(svg, "rect", { class: "ci", x: left, width: width - left, y: y(curve.high), height: Math.max(y(curve.low) - y(curve.high), 1) });
  for (const ratio of new Set([1, curve.low, curve.high])) {
    const look = ratio === 1 ? "one" : "end";
    drawn(svg, "line", { class: look, x1: left, x2: width, y1: y(ratio), y2: y(ratio) });
    drawn(svg, "text", { x: left - 6, y: y(ratio) + 4, "text-anchor": "end" }, `${Number(ratio.toPrecision(3))}×`);
  }
  curve.rounds.forEach((ratio, place) => drawn(svg, "circle", { cx: x(place + 1), cy: y(ratio), r: 4 }));
  drawn(svg, "text", { x: left, y: height - 4 }, "round 1");
  drawn(svg, "text", { x: width - 2, y: height - 4, "text-anchor": "end" }, `${rounds}`);
  return svg;
}

function progress(point) {
  const bar = element("progress");
  bar.max = point.expected;
  bar.value = point.rounds;
  bar.setAttribute("aria-label", "rounds measured, of those expected");
  return bar;
}

function timeLeft(point) {
  if (point.left) return `about ${point.left} left`;
  return point.left_at_most ? `at most ${point.left_at_most} left` : "";
}

function shown(point) {
  const part = element("div", "", "part");
  const rounds = point.expected ? `${point.rounds} of about ${point.expected} rounds` : `${point.rounds} rounds`;
  part.append(element("p", [point.label, rounds, `${point.took} measured`, timeLeft(point)].filter(Boolean).join(" · ")));
  if (point.expected) part.append(progress(point));
  if (point.curves.length) part.append(element("h2", `${point.metric}: ratio so far (${point.better} is better)`));
  for (const [number, ratio] of (point.ratios ?? []).entries()) {
    part.append(element("p", ratio, "now"));
    if (point.curves[number]) part.append(chart(point.curves[number], point.expected));
  }
  if (point.curves.length) {
    const wanted = point.wanted ? ` It ends when the CI is within ±${point.wanted}.` : "";
    part.append(element("p", `A dot: the ratio of a round. The band: the CI so far.${wanted}`, "soft small"));
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

// A field for a system of one's own is there when that is chosen.
for (const field of all("[data-own-of]")) {
  const choice = document.querySelector(`select[name="${field.dataset.ownOf}"]`);
  const show = () => {
    field.hidden = choice.value !== "";
    const input = field.querySelector("input");
    input.required = !field.hidden;
    if (field.hidden) input.value = "";
  };
  choice.addEventListener("change", show);
  show();
}

document.getElementById("filter")?.addEventListener("input", filter);
all("[data-events]").forEach(follow);
all("[data-reload]").forEach((place) => setTimeout(() => location.reload(), Number(place.dataset.reload)));
verdicts();
