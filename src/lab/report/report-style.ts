/** The report's style: by day, by night, on a phone and on paper. */
export const reportStyle = `:root {
  color-scheme: light dark;
  --paper: #f4f5f7; --card: #fff; --ink: #16191d; --quiet: #4c5560; --rule: #c9ced6;
  --good: #0b6b35; --good-paper: #e3f4e9; --bad: #a3121f; --bad-paper: #fde7e8; --wait: #7a4a00; --wait-paper: #fdf1d8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #111417; --card: #1b1f24; --ink: #eceff3; --quiet: #aab3be; --rule: #3b434d;
    --good: #74d99b; --good-paper: #10301e; --bad: #ff9ba1; --bad-paper: #431318; --wait: #f5c15c; --wait-paper: #382805;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem clamp(0.75rem, 3vw, 2rem) 3rem; max-width: 64rem;
  background: var(--paper); color: var(--ink); font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { margin: 0; font-size: 1.6rem; }
h2 { margin: 2rem 0 0.5rem; font-size: 1.2rem; }
h3 { margin: 0 0 0.4rem; font-size: 1rem; }
.counts { margin: 0.2rem 0 0.8rem; font-size: 1.2rem; font-weight: 600; }
dl { display: grid; gap: 0.2rem; margin: 0; }
dl div { display: grid; grid-template-columns: 7rem 1fr; gap: 0.5rem; }
dt, .rule, .legend, time { color: var(--quiet); }
dd { margin: 0; }
table { width: 100%; border-collapse: collapse; background: var(--card); border: 1px solid var(--rule); }
th, td { padding: 0.4rem 0.6rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); font-weight: 400; }
thead th { font-weight: 600; white-space: nowrap; }
tbody th a { overflow-wrap: break-word; }
a { color: inherit; }
.time { text-align: right; white-space: nowrap; }
.verdict { padding: 0.05rem 0.5rem; border-radius: 0.3rem; font-weight: 600; white-space: nowrap; }
.passed { color: var(--good); background: var(--good-paper); }
.failed { color: var(--bad); background: var(--bad-paper); }
.not-tested { color: var(--wait); background: var(--wait-paper); }
section { margin: 0 0 0.8rem; padding: 0.8rem 1rem; background: var(--card); border: 1px solid var(--rule); break-inside: avoid; }
section p { margin: 0.2rem 0; }
ol { list-style: none; margin: 0.6rem 0 0; padding: 0; font-size: 0.9rem; }
li { display: grid; grid-template-columns: 4rem 5.5rem 1fr; gap: 0.5rem; }
time { text-align: right; }
@media (max-width: 40rem) {
  thead { display: none; }
  tr { display: grid; grid-template-columns: auto 1fr; border-bottom: 1px solid var(--rule); }
  th, td { border: 0; }
  td:nth-child(3) { grid-column: 1 / -1; padding-top: 0; }
  .time { display: none; }
  li { grid-template-columns: 3.5rem 1fr; }
  li span { grid-column: 1 / -1; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --card: #fff; --ink: #000; --quiet: #333; --rule: #999; }
  .verdict { border: 1px solid currentColor; background: none; }
  body { padding: 0; font-size: 10pt; }
}
`;
