import { escaped } from "../../core/markup.ts";
import { countsText, type Judged, type Judgement, secondsText, type Verdict } from "./judgement.ts";
import { reportStyle } from "./report-style.ts";

/** A judgement as one HTML page without scripts, fit for print: verdicts first, time lines behind. */
export function reportOf(judgement: Judgement): string {
  const { subject, by, version, began, setup } = judgement;
  // What failed is what the reader is here for.
  const cases = judgement.cases.toSorted((one, other) => order.indexOf(one.verdict) - order.indexOf(other.verdict));
  const { name, "tried by": who, ...again } = setup;
  const facts = {
    subject,
    ...(name !== undefined && { name }),
    ...(who !== undefined && { "tried by": who }),
    posline: version,
    began: began.toISOString().replace("T", " ").slice(0, 19).concat(" UTC"),
  };
  const counts = countsText(cases);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(by)}: ${escaped(counts)}</title>
<style>
${reportStyle}</style>
</head>
<body>
<header>
<h1>${escaped(by)}</h1>
<p class="counts">${escaped(counts)}</p>
<dl>
${Object.entries(facts).map(fact).join("\n")}
</dl>
</header>
<main>
<h2>Verdicts</h2>
<table>
<thead><tr><th>Verdict</th><th>Case</th><th>Why</th><th>Time</th></tr></thead>
<tbody>
${cases.map(row).join("\n")}
</tbody>
</table>
<p class="legend">Passed: tried, and kept. Failed: tried, and broken. Not tested: it never came to be tried, so nothing is claimed.</p>
<h2>What happened</h2>
${cases.map(section).join("\n")}
<h2>What a repetition needs</h2>
<dl>
${Object.entries(again).map(fact).join("\n")}
</dl>
</main>
</body>
</html>
`;
}

const order: readonly Verdict[] = ["failed", "not tested", "passed"];

const fact = ([name, value]: readonly [string, string]) => `<div><dt>${escaped(name)}</dt><dd>${escaped(value)}</dd></div>`;

const verdictOf = ({ verdict }: Judged) => `<span class="verdict ${verdict.replace(" ", "-")}">${verdict}</span>`;

function row(judged: Judged): string {
  const { name, title, why, note = "", tookMs } = judged;
  const link = `<a href="#${escaped(name)}">${escaped(title)}</a>`;
  return `<tr><td>${verdictOf(judged)}</td><th scope="row">${link}</th><td>${escaped(`${why} ${note}`.trim())}</td><td class="time">${secondsText(tookMs)}</td></tr>`;
}

function section(judged: Judged): string {
  const { name, title, rule, listed, why, moments } = judged;
  const lines = moments.map(
    ({ atMs, who, text }) =>
      `<li class="${who}"><time>${secondsText(atMs)}</time><b>${who}</b><span>${escaped(text)}</span></li>`,
  );
  return `<section id="${escaped(name)}">
<h3>${verdictOf(judged)} ${escaped(title)}</h3>
<p>${escaped(why)}</p>
<p class="rule">${escaped(rule.from)}: “${escaped(rule.says)}”${listed === undefined ? "" : ` On acquirers’ lists: ${escaped(listed)}.`}</p>
<ol>
${lines.join("\n")}
</ol>
</section>`;
}
