// Tells whether this page has room beside its notebook: JupyterLab has a dock, other front ends have none.
export default {
  render({ model }) {
    if (document.getElementById("jp-main-dock-panel") && window.innerWidth >= 1400) {
      model.send({});
    }
  },
};
