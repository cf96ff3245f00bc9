// A question with a field for its answer. JupyterLab leaves the keys to it; Enter gives the answer.
let fields = 0;
export default {
  render({ model, el }) {
    const field = document.createElement("input");
    field.id = `sr-typed-${(fields += 1)}-${Math.random().toString(36).slice(2)}`;
    field.type = "text";
    field.inputMode = model.get("keyboard");
    field.autocomplete = "off";
    field.setAttribute("data-lm-suppress-shortcuts", "");
    const label = document.createElement("label");
    label.htmlFor = field.id;
    label.innerHTML = model.get("label");
    el.append(label, field);
    const show = () => {
      if (field.value !== model.get("typed")) field.value = model.get("typed");
    };
    field.addEventListener("input", () => {
      model.set("typed", field.value);
      model.save_changes();
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") model.send({ given: field.value });
    });
    model.on("change:typed", show);
    show();
  },
};
