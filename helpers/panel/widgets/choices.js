// A question with radio buttons or check boxes. JupyterLab leaves the keys to them: the arrows choose.
let groups = 0;
export default {
  render({ model, el }) {
    const name = `sr-choices-${(groups += 1)}-${Math.random().toString(36).slice(2)}`;
    const several = model.get("several");
    const label = document.createElement("span");
    label.id = name;
    label.innerHTML = model.get("label");
    el.setAttribute("role", several ? "group" : "radiogroup");
    el.setAttribute("aria-labelledby", name);
    const inputs = model.get("texts").map(() => document.createElement("input"));
    const answers = model.get("texts").map((text, index) => {
      const answer = document.createElement("label");
      inputs[index].type = several ? "checkbox" : "radio";
      inputs[index].name = name;
      inputs[index].setAttribute("data-lm-suppress-shortcuts", "");
      const said = document.createElement("span");
      said.innerHTML = text;
      answer.append(inputs[index], said);
      return answer;
    });
    el.append(label, ...answers);
    const show = () => {
      const chosen = model.get("chosen");
      inputs.forEach((input, index) => {
        input.checked = chosen.includes(index);
      });
    };
    el.addEventListener("change", () => {
      const chosen = [...inputs.keys()].filter((index) => inputs[index].checked);
      model.send({ chosen }); // a click overtakes what is saved, but no message
      model.set("chosen", chosen);
      model.save_changes();
    });
    model.on("change:chosen", show);
    show();
  },
};
