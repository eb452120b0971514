"use strict";
// Puts a living chart in the place of each drawn one. Colours are CSS variables, so that a chart
// follows the colour scheme and the printer without being drawn again.
const specs = JSON.parse(document.getElementById("charts").textContent);

for (const place of document.querySelectorAll("[data-chart]")) {
  const drawn = place.innerHTML;
  vegaEmbed(place, specs[place.dataset.chart], { actions: false, renderer: "svg" }).then(
    ({ view }) => {
      place.dataset.state = "live";
      const buttons = place.closest("figure").querySelectorAll("[data-arm]");
      for (const button of buttons) {
        button.addEventListener("click", () => {
          const pick = button.getAttribute("aria-pressed") === "false";
          for (const each of buttons) each.setAttribute("aria-pressed", pick && each === button);
          view.signal("highlighted", pick ? button.dataset.arm : "").runAsync();
        });
      }
    },
    (error) => {
      place.innerHTML = drawn;
      console.error(error);
    },
  );
}
