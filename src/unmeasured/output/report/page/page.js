"use strict";
(() => {
  const views = JSON.parse(document.getElementById("diagram-data").textContent);
  const [svg, stage, tip] = ["diagram", "stage", "tip"].map((id) => document.getElementById(id));
  // A narrow screen begins with what fits on it.
  const narrow = window.innerWidth < 640 && views.latents;
  if (narrow) views.latents = views.latents.narrow;
  const diagram = unmeasuredDiagram(svg, stage, tip, views);
  const tools = unmeasuredTools(diagram);
  if (narrow) tools.choose("view", "latents");
  unmeasuredSorting();

  const copy = document.getElementById("copy");
  copy.addEventListener("click", () => {
    // Not every browser lets a page from a file at the clipboard; selecting and copying works in all.
    const range = document.createRange();
    range.selectNodeContents(document.getElementById("lavaan"));
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    copy.textContent = document.execCommand("copy") ? "Copied" : "Selected: press Ctrl+C";
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  });
  // What is folded on a screen is printed in full.
  const folded = [...document.querySelectorAll("details")];
  window.addEventListener("beforeprint", () => folded.forEach((d) => { d.dataset.was = d.open; if (!d.hasAttribute("data-long")) d.open = true; }));
  window.addEventListener("afterprint", () => folded.forEach((d) => { d.open = d.dataset.was === "true"; }));
})();
