// A picture of lanes; a click on one chooses its rank.
export default {
  render({ model, el }) {
    const mark = () => {
      for (const lane of el.querySelectorAll("[data-rank]")) {
        lane.classList.toggle("chosen", Number(lane.dataset.rank) === model.get("chosen"));
      }
    };
    const show = () => {
      el.innerHTML = model.get("value");
      mark();
    };
    el.addEventListener("click", (event) => {
      const lane = event.target.closest("[data-rank]");
      if (!lane) return;
      model.set("chosen", Number(lane.dataset.rank));
      model.save_changes();
    });
    model.on("change:value", show);
    model.on("change:chosen", mark);
    show();
  },
};
