// A button for the questions around it. What is chosen in them goes with the click, in one message.
const given = (question) => {
  const inputs = [...question.querySelectorAll("input")];
  return question.classList.contains("sr-typed")
    ? { given: inputs[0].value }
    : { chosen: [...inputs.keys()].filter((index) => inputs[index].checked) };
};
export default {
  render({ model, el }) {
    const questions = ".sr-choices, .sr-typed";
    const button = document.createElement("button");
    button.className = "jupyter-widgets jupyter-button widget-button";
    button.title = model.get("purpose");
    const icon = document.createElement("i");
    icon.className = "fa fa-check";
    button.append(icon, "Answer");
    button.addEventListener("click", () => {
      let around = el;
      while (!around.querySelector(questions)) around = around.parentElement;
      model.send({ given: [...around.querySelectorAll(questions)].map(given) });
    });
    el.append(button);
  },
};
