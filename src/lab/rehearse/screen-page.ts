import { reportStyle } from "../report/report-style.ts";

/** The page for a till with a screen: what to do, what happens, and what its screen says. */
export const screenPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>posline rehearse</title>
<style>
${reportStyle}
#task { margin: 1.5rem 0 0.3rem; font-size: clamp(2rem, 7vw, 4rem); line-height: 1.1; font-weight: 700; }
#note { min-height: 1.5rem; font-size: 1.2rem; }
#said { display: flex; flex-wrap: wrap; gap: 0.6rem; margin: 1rem 0; }
#said button { font: inherit; font-size: 1.1rem; padding: 0.7rem 1.1rem; border: 2px solid var(--rule); border-radius: 0.4rem;
  background: var(--card); color: var(--ink); cursor: pointer; }
#said button:focus-visible { outline: 3px solid var(--wait); }
#said[hidden] { display: none; }
</style>
</head>
<body>
<header>
<h1>posline rehearse</h1>
<p class="counts"><span id="scenario"></span> <span id="counts"></span></p>
<dl id="addresses"></dl>
</header>
<main>
<p id="task" aria-live="assertive"></p>
<p id="note"></p>
<div id="said" role="group" aria-label="What does the till's screen say at the end?" hidden></div>
<h2>What happens</h2>
<section><ol id="moments"></ol></section>
</main>
<script>
const words = { approved: "Paid, or given back", declined: "Not paid", closed: "Receipt made", unprinted: "Receipt made, no paper",
  failed: "It failed, nothing was done", unknown: "It is in doubt", unsupported: "The till can't do that" };
const at = (id) => document.getElementById(id);
const element = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
for (const [word, text] of Object.entries(words)) {
  const button = element("button", text);
  button.onclick = () => fetch("/said", { method: "POST", body: word });
  at("said").append(button);
}
new EventSource("/events").onmessage = ({ data }) => {
  const { task, note, scenario, counts, addresses, moments } = JSON.parse(data);
  at("task").textContent = task || "Wait";
  at("note").textContent = note;
  at("scenario").textContent = scenario;
  at("counts").textContent = counts;
  at("said").hidden = task === "";
  at("addresses").replaceChildren(...Object.entries(addresses).map(([name, value]) => {
    const row = document.createElement("div");
    row.append(element("dt", name), element("dd", value));
    return row;
  }));
  at("moments").replaceChildren(...moments.map(({ atMs, who, text }) => {
    const line = document.createElement("li");
    line.append(element("time", (atMs / 1000).toFixed(1) + " s"), element("b", who), element("span", text));
    return line;
  }));
};
</script>
</body>
</html>
`;
