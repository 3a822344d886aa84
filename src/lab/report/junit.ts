import { escaped } from "../../core/markup.ts";
import { countOf, type Judged, type Judgement, secondsText } from "./judgement.ts";

/** A judgement as JUnit XML, which every CI server reads: `failure` for failed, `skipped` for not tested. */
export function junitOf(judgement: Judgement): string {
  const { subject, by, began, cases, setup, version } = judgement;
  const seconds = cases.reduce((sum, { tookMs }) => sum + tookMs, 0) / 1_000;
  const counts = `tests="${cases.length}" failures="${countOf(cases, "failed")}" errors="0" skipped="${countOf(cases, "not tested")}"`;
  const properties = Object.entries({ version, subject, ...setup });
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    "<testsuites>",
    `  <testsuite name="${escaped(by)}" ${counts} time="${seconds.toFixed(3)}" timestamp="${began.toISOString().slice(0, 19)}">`,
    "    <properties>",
    ...properties.map(([name, value]) => `      <property name="${escaped(name)}" value="${escaped(value)}"/>`),
    "    </properties>",
    ...cases.map((each) => caseOf(each, by)),
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

function caseOf({ name, verdict, why, rule, tookMs, moments }: Judged, by: string): string {
  const head = `    <testcase name="${escaped(name)}" classname="${escaped(by)}" time="${(tookMs / 1_000).toFixed(3)}"`;
  if (verdict === "passed") return `${head}/>`;
  if (verdict === "not tested") return `${head}><skipped message="${escaped(why)}"/></testcase>`;
  const timeLine = moments.map(({ atMs, who, text }) => `${secondsText(atMs)} ${who}: ${text}`);
  const detail = [`${rule.from}: ${rule.says}`, ...timeLine].map(escaped).join("\n");
  return `${head}><failure type="failed" message="${escaped(why)}">${detail}</failure></testcase>`;
}
