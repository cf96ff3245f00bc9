// A live region: the element stays in the page and only what is in it changes.
export default {
  render({ model, el }) {
    el.setAttribute("role", "status");
    el.setAttribute("aria-live", "polite");
    const show = () => {
      el.innerHTML = model.get("value");
    };
    model.on("change:value", show);
    show();
  },
};
