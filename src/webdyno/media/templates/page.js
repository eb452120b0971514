"use strict";
// Charts are pictures. This says what the mark under the pointer is, and picks out a variant.
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

for (const figure of document.querySelectorAll("figure")) {
  const buttons = figure.querySelectorAll("[data-variant]");
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const pick = button.getAttribute("aria-pressed") === "false";
      for (const each of buttons) {
        each.setAttribute("aria-pressed", pick && each === button);
        const colour = `"var(--${each.dataset.variant})"`;
        for (const mark of figure.querySelectorAll(`.chart [fill=${colour}], .chart [stroke=${colour}]`)) {
          mark.classList.toggle("muted", pick && each !== button);
        }
      }
    });
  }
}
