// A slider over the seconds of a run. JupyterLab leaves the keys to it: the arrows move it.
export default {
  render({ model, el }) {
    const label = document.createElement("label");
    const slider = document.createElement("input");
    const told = document.createElement("span");
    slider.type = "range";
    slider.step = "any";
    slider.min = model.get("min");
    slider.max = model.get("max");
    slider.setAttribute("data-lm-suppress-shortcuts", "");
    told.setAttribute("aria-hidden", "true");
    label.append(model.get("label"), slider);
    el.append(label, told);
    const show = () => {
      slider.value = model.get("value");
      told.textContent = Number(model.get("value")).toFixed(1);
      slider.setAttribute("aria-valuetext", `second ${told.textContent}`);
    };
    slider.addEventListener("input", () => {
      model.set("value", Number(slider.value));
      model.save_changes();
    });
    model.on("change:value", show);
    show();
  },
};
