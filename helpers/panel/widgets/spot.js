// Tells whether this page has room beside its notebook, and again whenever that changes. The file browser
// gives way to the panel: JupyterLab closes its side bar when the tab that is open is pressed once more.
const ROOM = 1200;
const giveWay = () => {
  const files = document.querySelector('.jp-SideBar .lm-mod-current[data-id="filebrowser"]');
  const { left, top } = files?.getBoundingClientRect() ?? {};
  for (const kind of files ? ["pointerdown", "pointerup"] : []) {
    const place = { clientX: left + 1, clientY: top + 1, button: 0, bubbles: true, cancelable: true };
    files.dispatchEvent(new PointerEvent(kind, place));
  }
};
export default {
  render({ model }) {
    if (!document.getElementById("jp-main-dock-panel")) return undefined; // other front ends have no dock
    let told;
    const tell = () => {
      const room = window.innerWidth >= ROOM;
      if (room === told) return;
      told = room;
      model.send({ room });
    };
    giveWay();
    tell();
    window.addEventListener("resize", tell);
    return () => window.removeEventListener("resize", tell);
  },
};
