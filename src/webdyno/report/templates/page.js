"use strict";
// Puts a living chart in the place of each drawn one. Colours are CSS variables, so that a chart
// follows the colour scheme and the printer without being drawn again.
const specs = JSON.parse(document.getElementById("charts").textContent);

async function bringToLife(figure) {
  const views = [];
  for (const place of figure.querySelectorAll("[data-chart]")) {
    const drawn = place.innerHTML;
    try {
      const spec = specs[place.dataset.chart];
      const { view } = await vegaEmbed(place, spec, { actions: false, renderer: "svg" });
      views.push(view);
      place.dataset.state = "live";
    } catch (error) {
      place.innerHTML = drawn;
      console.error(error);
    }
  }
  const buttons = figure.querySelectorAll("[data-arm]");
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const pick = button.getAttribute("aria-pressed") === "false";
      for (const each of buttons) each.setAttribute("aria-pressed", pick && each === button);
      for (const view of views) {
        view.signal("highlighted", pick ? button.dataset.arm : "").runAsync();
      }
    });
  }
}

for (const figure of document.querySelectorAll("figure")) {
  const fold = figure.closest("details");
  // A chart is as wide as its place, which has no width while it is folded away.
  if (fold) fold.addEventListener("toggle", () => bringToLife(figure), { once: true });
  else bringToLife(figure);
}
