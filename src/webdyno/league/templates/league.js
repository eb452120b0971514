// Rows by language and kind, and two that are picked for comparing.
for (const form of document.querySelectorAll(".filters")) {
  const rows = [...form.parentElement.querySelectorAll("tr[data-language]")];
  const said = form.querySelector("output");
  form.hidden = false;
  form.addEventListener("change", () => {
    const wanted = [...form.querySelectorAll("select")].filter((it) => it.value);
    for (const row of rows) row.hidden = wanted.some((it) => row.dataset[it.dataset.filter] !== it.value);
    said.textContent = wanted.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  });
}

const boxes = [...document.querySelectorAll("input[name=pick]")];
const leads = document.querySelector(".compare");
for (const heading of document.querySelectorAll(".picks")) heading.textContent = "compare";
for (const box of boxes) {
  box.hidden = false;
  box.checked = false;
  box.addEventListener("change", () => {
    const picked = boxes.filter((it) => it.checked);
    if (picked.length > 2) picked.find((it) => it !== box).checked = false;
    const two = boxes.filter((it) => it.checked).map((it) => it.value);
    leads.hidden = two.length < 2;
    if (two.length < 2) return;
    const link = leads.querySelector("a");
    link.textContent = `Compare ${two.join(" and ")}`;
    link.href = `compare.html?${new URLSearchParams({ a: two[0], b: two[1] })}`;
  });
}

const two = document.getElementById("two");
if (two) {
  const known = JSON.parse(document.getElementById("pairs").textContent);
  const asked = new URLSearchParams(location.search);
  const make = (name, text, parent) => parent.appendChild(Object.assign(document.createElement(name), { textContent: text }));
  const digits = (value) => value.toFixed(value < 10 ? 2 : 1);
  // Of the ratio the other way round; null is an end that is open.
  const turned = (value) => (value === null ? 0 : value ? 1 / value : null);
  const around = (low, high) => (high === null ? `${digits(low)} or more` : low ? `${digits(low)}–${digits(high)}` : `${digits(high)} or less`);
  // Pairs are kept once, the better-placed stack first.
  const verdictOf = (test, a, b) => {
    const [i, j] = [test.stacks[a].place, test.stacks[b].place];
    const pair = i === null || j === null ? null : test.pairs[Math.min(i, j)][Math.abs(i - j) - 1];
    if (!pair) return ["", "open"];
    let [word, ...ends] = pair;
    if (i > j) {
      word = { faster: "slower", slower: "faster" }[word] ?? word;
      ends = ends.map(turned).reverse();
    }
    const [low, estimate, high] = ends;
    const ratio = ends.length ? `${digits(estimate)}× (${around(low, high)})` : "";
    const limits = [a, b].filter((name) => test.stacks[name].limit).map((name) => `; ${test.stacks[name].limit} limited ${name}`);
    const said = { faster: `${a} is better`, slower: `${b} is better`, equivalent: "equal" }[word] ?? "open";
    return [ratio, said + limits.join("")];
  };
  const show = () => {
    const [a, b] = [two.a.value, two.b.value];
    const place = document.getElementById("compared");
    place.replaceChildren();
    const shared = known.filter((it) => it.stacks[a] && it.stacks[b]);
    if (!shared.length || a === b) {
      make("p", a === b ? "Choose two different stacks." : "No test has both.", place);
      return;
    }
    const scroll = make("div", "", place);
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Both stacks, test by test");
    const table = make("table", "", scroll);
    const head = make("tr", "", make("thead", "", table));
    for (const name of ["test", "", a, b, "ratio", "verdict"]) make(name ? "th" : "td", name, head).scope = "col";
    for (const test of shared) {
      const body = make("tbody", "", table);
      test.metrics.forEach((metric, number) => {
        const row = make("tr", "", body);
        if (!number) {
          const name = make("th", test.words, row);
          name.scope = "rowgroup";
          name.rowSpan = test.metrics.length;
        }
        make("td", metric, row);
        for (const stack of [a, b]) make("td", test.stacks[stack].figures[number], row);
        const [ratio, verdict] = number ? ["", ""] : verdictOf(test, a, b);
        make("td", ratio, row);
        make("td", verdict, row);
      });
    }
  };
  for (const name of ["a", "b"]) if (asked.get(name)) two[name].value = asked.get(name);
  if (!asked.get("b") && two.b.options.length > 1) two.b.selectedIndex = 1;
  two.hidden = false;
  two.addEventListener("change", show);
  show();
}
