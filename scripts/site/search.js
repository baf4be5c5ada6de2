// Every word has to occur in a section; a word of its headings counts more.
const field = document.getElementById("search"), found = document.getElementById("found");
const texts = INDEX.map(([, title, heading, words]) => [`${title} ${heading}`.toLowerCase(), words.toLowerCase()]);
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = [];
  texts.forEach(([head, body], number) => {
    const points = words.map(word => 5 * head.includes(word) + body.includes(word));
    if (words.length && points.every(Boolean)) hits.push([points.reduce((a, b) => a + b), number]);
  });
  hits.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  found.replaceChildren(...hits.slice(0, 12).map(([, number]) => {
    const [href, title, heading] = INDEX[number], item = document.createElement("li");
    const link = document.createElement("a"), small = document.createElement("small");
    link.href = href; link.textContent = heading; small.textContent = title;
    if (heading !== title) link.append(small);
    item.append(link);
    return item;
  }));
  if (words.length && !hits.length) found.append("Nothing found");
  found.hidden = !words.length;
});
