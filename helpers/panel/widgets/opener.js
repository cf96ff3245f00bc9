// Follows the link of its surroundings when it is told to, once JupyterLab has made it one of its own.
export default {
  render({ model, el }) {
    const follow = () => {
      const surroundings = el.closest(".sr-turn");
      const pressed = () => {
        const link = surroundings.querySelector('a[href*="/files/"]');
        link?.click();
        return link !== null;
      };
      if (!pressed()) {
        const watch = new MutationObserver(() => pressed() && watch.disconnect());
        watch.observe(surroundings, { attributes: true, childList: true, subtree: true });
      }
    };
    model.on("msg:custom", follow);
    return () => model.off("msg:custom", follow);
  },
};
