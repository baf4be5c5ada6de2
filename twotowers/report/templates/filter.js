// Verdicts are filtered by paper, verdict, data and words. The address says what is chosen, behind
// a question mark after its '#', so that a choice can be sent to others.
const form = document.querySelector(".filter");
const rows = [...document.querySelectorAll(".claims > li")];
const texts = rows.map(row => row.textContent.toLowerCase());

function show() {
  const { paper, verdict, recorded, kind, stands, origin, words } = Object.fromEntries(new FormData(form));
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  rows.forEach((row, index) => {
    const fits = (!paper || row.dataset.paper === paper)
      && (!verdict || row.dataset.verdict === verdict)
      && (!recorded || row.dataset.recorded === recorded)
      && (!kind || row.dataset.kind.split("|").includes(kind))
      && (!stands || row.dataset.stands === stands)
      && (!origin || row.dataset.origin === origin)
      && wanted.every(word => texts[index].includes(word));
    row.hidden = !fits;
    shown += fits;
  });
  form.querySelector("output").textContent = `${shown} of ${rows.length} verdicts`;
}

function remember() {
  const chosen = [...new FormData(form)].filter(([, value]) => value);
  const query = new URLSearchParams(chosen);
  history.replaceState(null, "", chosen.length ? `#verdicts?${query}` : "#verdicts");
}

function recall() {
  const [place, query] = location.hash.slice(1).split("?");
  if (query === undefined) return;
  form.reset();
  for (const [name, value] of new URLSearchParams(query))
    if (form.elements[name]) form.elements[name].value = value;
  show();
  document.getElementById(place)?.scrollIntoView();
}

form.hidden = false;
form.addEventListener("submit", event => event.preventDefault());
form.addEventListener("input", () => { show(); remember(); });
// A reset is told before the fields are empty.
form.addEventListener("reset", () => setTimeout(() => { show(); remember(); }));
addEventListener("hashchange", recall);
show();
recall();
