"use strict";
(() => {
  const slider = document.getElementById("frequency"), shown = document.getElementById("frequency-value");
  const count = document.getElementById("frequency-count");
  const lines = [...document.querySelectorAll("#frequencies path")], rows = [...document.querySelectorAll("#edge-frequencies tbody tr")];
  const update = () => {
    const least = Number(slider.value);
    // A little slack: half of the replicates is not below one half.
    const hide = (thing) => thing.classList.toggle("hidden", Number(thing.dataset.frequency) < least - 1e-9);
    lines.forEach(hide);
    rows.forEach(hide);
    shown.textContent = `${Math.round(100 * least)}%`;
    count.textContent = `${rows.filter((row) => !row.classList.contains("hidden")).length} of ${rows.length} edges`;
  };
  slider.addEventListener("input", update);
  update();
})();
