// HTML that is drawn for the room there is: tells how wide its place is, in steps of 20 pixels.
export default {
  render({ model, el }) {
    const show = () => {
      el.innerHTML = model.get("value");
    };
    const watch = new ResizeObserver(() => {
      const room = Math.floor(el.clientWidth / 20) * 20;
      if (room > 0 && room !== model.get("room")) {
        model.set("room", room);
        model.save_changes();
      }
    });
    watch.observe(el);
    model.on("change:value", show);
    show();
    return () => {
      watch.disconnect();
      model.off("change:value", show);
    };
  },
};
