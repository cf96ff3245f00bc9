// Searches the site's own index, which is loaded with the first word that is typed.
const field = document.getElementById("search");
const results = document.getElementById("results");
const count = document.getElementById("found");
const MOST = 12;
const AROUND = 70;

function load() {
  if (document.getElementById("index")) return;
  const script = document.createElement("script");
  script.id = "index";
  script.src = `${document.documentElement.dataset.root}search-index.js`;
  script.addEventListener("load", find);
  document.head.append(script);
}

function find() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = words.length > 0 && window.searchIndex !== undefined;
  document.body.classList.toggle("searching", shown);
  results.replaceChildren();
  count.textContent = "";
  if (!shown) return;
  const found = window.searchIndex.sections
    .map((section) => ({ section, score: score(section, words) }))
    .filter((hit) => hit.score > 0)
    .sort((one, other) => other.score - one.score);
  const more = found.length > MOST ? `, of which the first ${MOST} are shown` : "";
  count.textContent = found.length === 0 ? "Nothing found." : `${found.length} found${more}.`;
  results.append(...found.slice(0, MOST).map(({ section }) => item(section, words)));
}

// Every word has to be there; a title counts most, then a heading, then how often it is in the text.
function score([page, , heading, text], words) {
  const [title] = window.searchIndex.pages[page];
  let sum = 0;
  for (const word of words) {
    const inTitle = title.toLowerCase().includes(word);
    const inHeading = heading.toLowerCase().includes(word);
    const times = text.toLowerCase().split(word).length - 1;
    if (!inTitle && !inHeading && times === 0) return 0;
    sum += (inTitle ? 4 : 0) + (inHeading ? 8 : 0) + Math.min(times, 5);
  }
  return sum;
}

function item([page, anchor, heading, text], words) {
  const [title, place] = window.searchIndex.pages[page];
  const link = document.createElement("a");
  link.href = `${document.documentElement.dataset.root}${place}#${encodeURIComponent(anchor)}`;
  link.textContent = heading === title ? title : `${heading} · ${title}`;
  const said = document.createElement("p");
  said.textContent = excerpt(text, [words.join(" "), ...words]);
  const entry = document.createElement("li");
  entry.append(link, said);
  return entry;
}

// The text around the first of some words that is in it, from word to word.
function excerpt(text, words) {
  const at = words.map((word) => text.toLowerCase().indexOf(word)).find((place) => place >= 0) ?? 0;
  const from = at > AROUND ? text.indexOf(" ", at - AROUND) + 1 : 0;
  const until = text.lastIndexOf(" ", at + 2 * AROUND);
  const cut = text.length > at + 2 * AROUND;
  return `${from > 0 ? "… " : ""}${cut ? `${text.slice(from, until)} …` : text.slice(from)}`;
}

field.addEventListener("focus", load);
field.addEventListener("input", () => {
  load();
  find();
});
document.getElementById("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  results.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    field.value = "";
    find();
  }
});
