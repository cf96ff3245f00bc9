// Recordings that play. The picture is drawn to its end; lanes are clipped to the second that is shown.
const SVG = "http://www.w3.org/2000/svg";

for (const root of document.querySelectorAll(".playback")) {
  const data = JSON.parse(root.querySelector("script").textContent);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const play = part("play");
  const second = part("second");
  const rank = part("rank");
  const inside = part("inside");
  const said = part("said");
  const clips = [...root.querySelectorAll(".wall svg")].map(clipped);
  let playing = 0;

  const show = () => {
    const now = Number(second.value);
    clips.forEach((clip) => clip(now));
    part("told").textContent = now.toFixed(1);
    second.setAttribute("aria-valuetext", `second ${now.toFixed(1)}`);
    lookInto(now);
  };

  function lookInto(now) {
    const number = rank.value;
    for (const lane of root.querySelectorAll("[data-rank]")) {
      lane.classList.toggle("chosen", lane.dataset.rank === number);
    }
    const seen = data.ranks[number] ?? [];
    const [, text] = seen.findLast(([time]) => time <= now + 0.01) ?? seen[0] ?? [];
    inside.hidden = text === undefined;
    if (inside.hidden) return;
    const html = data.texts[text];
    if (inside.dataset.shown === `${number} ${text}`) return;
    inside.dataset.shown = `${number} ${text}`;
    inside.innerHTML = html;
    inside.querySelector("strong").textContent = `rank ${number}`;
  }

  // The lanes of a picture begin and end where the frames around them do.
  function clipped(svg) {
    const frame = svg.querySelector(".frame");
    const left = Number(frame.getAttribute("x")) + 1;
    const wide = Number(frame.getAttribute("width")) - 2;
    const clip = document.createElementNS(SVG, "clipPath");
    const box = document.createElementNS(SVG, "rect");
    clip.id = `${svg.id}-now`;
    for (const [name, value] of [["x", 0], ["y", -2], ["height", 60]]) box.setAttribute(name, value);
    clip.append(box);
    svg.append(clip);
    for (const lane of svg.querySelectorAll("[data-rank] > .s")) {
      lane.setAttribute("clip-path", `url(#${clip.id})`);
    }
    return (now) => {
      const share = (now - data.begin) / Math.max(data.end - data.begin, 1e-6);
      box.setAttribute("width", left + wide * Math.min(Math.max(share, 0), 1));
    };
  }

  function pause() {
    cancelAnimationFrame(playing);
    playing = 0;
    play.textContent = "Play";
  }

  function start() {
    if (Number(second.value) >= data.end - 1e-6) second.value = data.begin;
    play.textContent = "Pause";
    let before = performance.now();
    const step = (now) => {
      const passed = ((now - before) / 1000) * Number(part("speed").value);
      before = now;
      second.value = Math.min(Number(second.value) + passed, data.end);
      show();
      if (Number(second.value) >= data.end - 1e-6) pause();
      else playing = requestAnimationFrame(step);
    };
    playing = requestAnimationFrame(step);
  }

  function answer() {
    const chosen = rank.value;
    if (chosen === "") {
      said.textContent = "Choose a rank first.";
    } else if (data.right.includes(Number(chosen))) {
      said.textContent = "Right.";
      part("verdict").open = true;
    } else {
      const again = "Look for a lane that differs from the others at the end, and try again.";
      said.textContent = `No. ${data.instead[chosen]} ${again}`;
    }
  }

  play.addEventListener("click", () => (playing ? pause() : start()));
  second.addEventListener("input", () => {
    pause();
    show();
  });
  rank.addEventListener("change", () => lookInto(Number(second.value)));
  root.addEventListener("click", (event) => {
    const lane = event.target.closest("[data-rank]");
    if (!lane) return;
    rank.value = lane.dataset.rank;
    lookInto(Number(second.value));
  });
  part("answer").addEventListener("click", answer);
  show();
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (root.closest("[data-plays]") && !still) start();
}
