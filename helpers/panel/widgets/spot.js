// Tells whether this page has room beside its notebook, and when it has none any more. The file browser
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
    const hasRoom = () => window.innerWidth >= ROOM;
    let room = hasRoom();
    const shrink = () => {
      if (room && !hasRoom()) model.send({ room: (room = false) });
    };
    giveWay();
    model.send({ room });
    window.addEventListener("resize", shrink);
    return () => window.removeEventListener("resize", shrink);
  },
};
