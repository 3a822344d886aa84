import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { metrics } from "../../src/admin/metrics.ts";
import { ask, scratchFolder } from "../support/bridge-process.ts";
import { bundle, PoslineProcess } from "../support/posline-process.ts";
import { noPrometheus, PrometheusProcess, promtool } from "../support/prometheus.ts";
import { until } from "../support/until.ts";
import { blocks, page } from "./docs.ts";
import { fiscalForm, post, receipt, resultOf, saleOf } from "./emulating.ts";

/** /metrics of the real bundle, and scripts/prometheus/, as Prometheus' own programs judge them. */

const folder = fileURLToPath(new URL("../../scripts/prometheus", import.meta.url));
const rules = readFileSync(join(folder, "posline.rules.yml"), "utf8");

/** A card number in each field of a request that can carry one. */
const card = "4111111111111111";

let bridge: PoslineProcess;
let admin = 0;
before(async () => {
  bridge = new PoslineProcess(["serve", "--emulated"]);
  await bridge.logged((line) => line["state"] === "idle", "the line to be clean");
  admin = await bridge.port("admin");
  await traffic(1);
  // What leads to discards and faults: noise before an answer, a wrong checksum, a wrong path, a body that isn't JSON.
  const bank = await bridge.port("bank");
  await post(bank, "/sale", saleOf("noise", 1538));
  await post(bank, "/sale", saleOf("corrupt", 1534));
  await post(bank, `/${card}`, "{}", { "X-Request-Id": card });
  await post(bank, "/sale", `{"card_num":${card}`);
  await post(bank, "/check", JSON.stringify({ pay_id: card }));
});
after(() => bridge.ended("SIGKILL"));

/** What each service is asked on a day. */
async function traffic(round: number): Promise<void> {
  const bank = await bridge.port("bank");
  await post(bank, "/sale", saleOf(`P-${round}`));
  await resultOf(bank, `P-${round}`);
  await post(await bridge.port("fiscal"), "/sale", fiscalForm(receipt(`R-${round}`)));
  await post(await bridge.port("qr"), "/check_connection", "");
}

const scrape = async () => (await ask(admin, "GET", "/metrics", "")).text;

test("/metrics of a bridge passes promtool's check", { skip: noPrometheus }, async () => {
  assert.equal(promtool(["check", "metrics"], await scrape()), "");
});

test("/metrics has the metrics that the table names, and no other", async () => {
  const names = [...(await scrape()).matchAll(/^# HELP (\S+) /gm)].map(([, name]) => name);
  assert.deepEqual(
    names,
    metrics.map(({ name }) => name),
  );
});

test("/metrics of a gateway passes promtool's check", { skip: noPrometheus }, async (t) => {
  const noPorts = { POSLINE_FISCAL_PORT: undefined, POSLINE_BANK_PORT: undefined, POSLINE_QR_PORT: undefined };
  const gateway = new PoslineProcess(["gateway", "--line", "/dev/none"], { env: noPorts });
  t.after(() => gateway.ended("SIGKILL"));
  const { text } = await ask(await gateway.port("admin"), "GET", "/metrics", "");
  assert.equal(promtool(["check", "metrics"], text), "");
  assert.match(text, /^posline_line_state\{line="\w+",state="down"\} 1$/m);
  assert.match(text, /^posline_exchanges_total\{service="bank",route="\/sale",outcome="answered"\} 0$/m);
});

test("promtool finds no fault in the alerts, their tests pass, and the scrape example can be used", {
  skip: noPrometheus,
}, () => {
  promtool(["check", "rules", join(folder, "posline.rules.yml")]);
  promtool(["test", "rules", join(folder, "posline.rules.test.yml")]);
  promtool(["check", "config", join(folder, "prometheus.yml")]);
});

const noAmtool =
  spawnSync("amtool", ["--version"]).error !== undefined &&
  "there is no amtool here: sudo apt-get install prometheus-alertmanager";

test("monitoring.md's quiet nights are a configuration that Alertmanager takes", { skip: noAmtool }, () => {
  const [nights = ""] = blocks("yaml", page("docs/monitoring.md"));
  const folder = scratchFolder();
  const file = join(folder.path, "alertmanager.yml");
  writeFileSync(file, `${nights}receivers:\n  - name: on-call\n`);
  assert.match(execFileSync("amtool", ["check-config", file], { encoding: "utf8" }), /SUCCESS/);
});

/** Has Prometheus' own tool evaluate queries. JSON is YAML. */
function evaluates(series: readonly object[], asked: readonly object[]): void {
  const scratch = scratchFolder();
  const file = join(scratch.path, "queries.test.yml");
  writeFileSync(file, JSON.stringify({ tests: [{ interval: "1m", input_series: series, promql_expr_test: asked }] }));
  promtool(["test", "rules", file]);
}

test("the dashboard has a row for each box, with the age of its oldest unknown operation, the oldest first", {
  skip: noPrometheus,
}, () => {
  const dashboard = JSON.parse(readFileSync(join(folder, "grafana-dashboard.json"), "utf8")) as Dashboard;
  const [{ expr = "" } = {}] = dashboard.panels.find(({ title }) => title === "Oldest operation in doubt")?.targets ?? [];
  const of = (name: string) => `posline_journal_oldest_unknown_timestamp_seconds{instance="${name}"}`;
  const series = Object.entries({ well: 0, late: 300, fresh: 1_700 }).map(([name, at]) => ({
    series: of(name),
    values: `${at}x40`,
  }));
  const rows = Object.entries({ late: 1_500, fresh: 100, well: 0 });
  const found = rows.map(([name, value]) => ({ labels: `{instance="${name}"}`, value }));
  evaluates(series, [{ expr: expr.replaceAll("$instance", ".*"), eval_time: "30m", exp_samples: found }]);
});

test("fleet.md's gate finds the boxes in trouble that have the version, and no other", { skip: noPrometheus }, () => {
  const [queries = ""] = blocks("text", page("docs/fleet.md")).filter((block) => block.includes("posline_ready"));
  const [gate = "", ...others] = queries.trim().split("\n\n");
  assert.equal(others.length, 2);
  const box = (name: string, version: string, unknown: number, ready: number) => [
    { series: `posline_build_info{box="${name}",version="${version}"}`, values: "1" },
    { series: `posline_journal_unknown_operations{box="${name}"}`, values: `${unknown}` },
    { series: `posline_ready{box="${name}"}`, values: `${ready}` },
  ];
  const [, version = ""] = /version="(.*)"/.exec(gate) ?? [];
  const series = [
    ...box("well", version, 0, 1),
    ...box("in doubt", version, 2, 1),
    ...box("not ready", version, 0, 0),
    ...box("older", "0.0.1", 2, 0),
  ];
  const found = [
    { labels: 'posline_journal_unknown_operations{box="in doubt"}', value: 2 },
    { labels: 'posline_ready{box="not ready"}', value: 0 },
  ];
  const counted = [
    { labels: `{version="${version}"}`, value: 3 },
    { labels: '{version="0.0.1"}', value: 1 },
  ];
  const asked = [
    { expr: gate, eval_time: "0m", exp_samples: found },
    { expr: others[1] ?? "", eval_time: "0m", exp_samples: counted },
  ];
  evaluates(series, asked);
});

test("each alert says what happened, what it means, and what to do by a command that there is", () => {
  const help = execFileSync(process.execPath, [bundle, "--help"], { encoding: "utf8" });
  const alerts = rules.split("- alert: ").slice(1);
  assert.equal(alerts.length, 9);
  for (const alert of alerts) {
    for (const key of ["summary: ", "description: ", "action: ", "runbook: "])
      assert.ok(alert.includes(key), `${key} in ${alert}`);
    const [, action = ""] = /action: ([\s\S]*)/.exec(alert) ?? [];
    assert.match(action, /posline (?:doctor|journal|logs|config)|systemctl|curl/);
    for (const [, command = ""] of action.matchAll(/posline (doctor|journal|logs|config)/g)) {
      assert.match(help, new RegExp(`^ +posline ${command}\\b`, "m"), command);
    }
  }
});

/** What Prometheus is asked by alerts and dashboard names metrics that there are. */
test("the alerts and the dashboard ask for metrics and labels that there are", () => {
  const dashboard = readFileSync(join(folder, "grafana-dashboard.json"), "utf8");
  const known = new Map(metrics.map(({ name, labels }) => [name, labels]));
  const asked = [...`${rules}${dashboard}`.matchAll(/\b((?:posline|process)_\w+)(?:\{([^}]*)\})?/g)];
  assert.ok(asked.length > 30);
  for (const [, name = "", selector = ""] of asked) {
    const labels = known.get(name.replace(/_(?:bucket|sum|count)$/, "")) ?? known.get(name);
    assert.ok(labels !== undefined, `there is no metric ${name}`);
    for (const [, label = ""] of selector.matchAll(/(\w+)=/g)) {
      assert.ok(["job", "instance", ...labels].includes(label), `${name} has no label ${label}`);
    }
  }
});

interface Panel {
  readonly title: string;
  readonly description: string;
  readonly datasource: { readonly uid: string };
  readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
  readonly panels: readonly Panel[];
}

// Grafana isn't in Debian: what its panels ask is asked of a Prometheus in its place.
test("each query of the dashboard's panels gives data of a real run", { skip: noPrometheus, timeout: 90_000 }, async (t) => {
  // The file is the test's own.
  const dashboard = JSON.parse(readFileSync(join(folder, "grafana-dashboard.json"), "utf8")) as Dashboard;
  assert.ok(dashboard.templating.list.some(({ name, type }) => name === "datasource" && type === "datasource"));
  const prometheus = await PrometheusProcess.start(admin);
  t.after(() => prometheus.stop());
  const scrapes = 'count_over_time(posline_ready{job="posline"}[1m]) >= 2';
  await until(async () => (await prometheus.query(scrapes)).data?.result.length === 1, "two scrapes", 20_000);
  await traffic(2);
  await post(await bridge.port("bank"), "/nowhere", "{}");
  const moved = 'increase(posline_faults_total{service="bank",reason="unknown-route"}[1m]) > 0';
  await until(async () => (await prometheus.query(moved)).data?.result.length === 1, "the traffic to be scraped", 20_000);
  const queries = dashboard.panels.flatMap(({ title, description, datasource, targets }) => {
    assert.notEqual(description, "", title);
    for (const each of [{ datasource }, ...targets]) assert.equal(each.datasource.uid, `\${datasource}`, title);
    return targets.map(({ expr }) => ({ title, expr }));
  });
  assert.ok(queries.length > 20);
  for (const { title, expr } of queries) {
    const query = expr.replaceAll("$__rate_interval", "1m").replaceAll("$instance", ".*");
    const { status, error, data } = await prometheus.query(query);
    assert.equal(status, "success", `${title}: ${error}`);
    assert.ok((data?.result.length ?? 0) > 0, `${title}: no data for ${query}`);
  }
});
