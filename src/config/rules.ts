import { realpathSync } from "node:fs";
import { contracts } from "../contract/contracts.ts";
import { addressesOf, canonicalAddress, isLoopback, reachableAddress } from "../core/address.ts";
import { type Config, ConfigError, emulatedPath, type LineConfig } from "./config.ts";
import { readTcpAddress, readUsbName, writeUsbName } from "./device-name.ts";
import { exposedAdmin, exposedServices, needsToken } from "./exposure.ts";
import { idleProbeMsMin, lineDefaults, queueBytesMax } from "./limits.ts";
import { refuseUpstreams } from "./upstreams.ts";

/**
 * The rules across settings: what they refuse would otherwise show later as a service that can't listen, a device opened twice, a
 * call sent to the wrong terminal, or a box out of memory.
 */

/** Reports every rule that the configuration breaks. */
export function refuseCrossed(config: Config, problems: string[]): void {
  refuseLines(config, problems);
  refuseSharedContracts(config, problems);
  refuseSharedSelectors(config, problems);
  refuseSharedDevices(config, problems);
  refuseSharedPorts(config, problems);
  for (const [name, { allowOrigins }] of services(config)) refuseOrigins(`services.${name}`, allowOrigins, problems);
  if (config.admin !== undefined) refuseOrigins("admin", config.admin.allowOrigins, problems);
  refuseOpenAdmin(config, problems);
  refuseUpstreams(config, problems);
}

/**
 * Refuses to serve where every sale must be recorded and there is no folder for it. Only for the bridge, at its start: other
 * commands read the configuration without systemd's state folder, and need none.
 * @throws ConfigError
 */
export function refuseUnrecorded({ journal }: Pick<Config, "journal">): void {
  if (isUnrecorded(journal)) throw new ConfigError([unrecorded]);
}

const isUnrecorded = (journal: Config["journal"]) =>
  journal !== false && journal.folder === undefined && journal.onFailure === "refuse";

const unrecorded =
  'journal.folder: not set, but journal.onFailure is "refuse", which sends nothing without a record, so posline serve does not ' +
  'start: set "journal": {"folder": "/var/lib/posline"}, or set journal.onFailure to "relay"';

/**
 * What works, but not as its operator may think.
 * @param played Whether posline plays the services, and sends no requests.
 */
export function warningsOf(config: Config, played = false): string[] {
  const warnings = [...lineWarnings(config), ...exposedServices(config), ...exposedAdmin(config)];
  if (isUnrecorded(config.journal)) warnings.push(unrecorded);
  else if (config.journal !== false && config.journal.folder === undefined) {
    warnings.push(
      "journal.folder: not set, so after a crash or a power cut you can't tell which payments were in progress: set " +
        '"journal": {"folder": "/var/lib/posline"}, or "journal": false to go without it',
    );
  }
  for (const [name, service] of services(config)) {
    const line = config.lines[service.line];
    if (service.contract === "fiscal" && service.merchantId === undefined && !played && line?.recovery === "barrier") {
      warnings.push(
        `services.${name}.merchantId: not set, so posline can't verify signatures, and its line takes no calls for ` +
          `${line.lateReplyMs} ms at each start, and ten times as long after each lost fiscal answer: set merchantId or merchantIdFile`,
      );
    }
  }
  return warnings;
}

const services = (config: Config) => Object.entries(config.services);

/** What of the lines works, but not as its operator may think. */
export function lineWarnings({ lines }: Config): string[] {
  return Object.entries(lines).flatMap(([name, line]) => (line.path === emulatedPath ? [] : warningsOfLine(name, line)));
}

/** Settings of a serial device. Of a line over TCP they count at most for the time that its bytes are given. */
const deviceSettings = ["dataBits", "parity", "stopBits", "flowControl", "hupcl"] as const;

function warningsOfLine(name: string, line: LineConfig): string[] {
  if (readTcpAddress(line.path) !== undefined) {
    const idle = deviceSettings.filter((setting) => line[setting] !== lineDefaults[setting]);
    const cure = "has no effect on a line over TCP: set it at the far end, and take it out here";
    return idle.map((setting) => `lines.${name}.${setting}: ${JSON.stringify(line[setting])} ${cure}`);
  }
  const warnings: string[] = [];
  if (line.dataBits !== 8) {
    warnings.push(
      `lines.${name}.dataBits: ${line.dataBits} bits damage every checksum and UTF-8 text: set it to 8, which the contracts need`,
    );
  }
  if (line.flowControl === "xonxoff") {
    warnings.push(
      `lines.${name}.flowControl: "xonxoff" removes the bytes 11 and 13 hex, which occur in lengths and checksums: use "rtscts" or "none"`,
    );
  }
  return warnings;
}

/** Every service has a line, every line a service, and what may wait for a line fits into memory. */
function refuseLines(config: Config, problems: string[]): void {
  const names = Object.keys(config.lines);
  for (const [name, service] of services(config)) {
    // An empty name stands for a missing or invalid one, which was reported already.
    if (service.line !== "" && !Object.hasOwn(config.lines, service.line)) {
      const there = names.length === 0 ? "add it to lines" : `use one of ${names.join(", ")}`;
      problems.push(`services.${name}.line: there is no line ${JSON.stringify(service.line)}: ${there}`);
    }
  }
  // A service that is invalid elsewhere may be the one that was meant to use a line: report the cause, not the consequence.
  const allKnown = problems.length === 0;
  for (const [name, line] of Object.entries(config.lines)) {
    const users = services(config).filter(([, service]) => service.line === name);
    if (users.length === 0 && allKnown) {
      // An error, not a warning: such a line is a service that was meant to use it and now talks to another terminal.
      problems.push(`lines.${name}: no service uses this line: set "line" of a service to it, or remove it`);
    }
    if (line.idleProbeMs > 0 && line.idleProbeMs < idleProbeMsMin) {
      problems.push(`lines.${name}.idleProbeMs: must be 0 (off) or at least ${idleProbeMsMin}, not ${line.idleProbeMs}`);
    }
    const bytes = line.queueCallsMax * Math.max(0, ...users.map(([, service]) => service.bodyBytesMax));
    if (bytes > queueBytesMax) {
      problems.push(
        `lines.${name}.queueCallsMax: ${line.queueCallsMax} waiting calls of up to ` +
          `${bytes / line.queueCallsMax} bytes may take ${Math.round(bytes / 1024 / 1024)} MiB of memory, more ` +
          `than the limit of ${queueBytesMax / 1024 / 1024} MiB: lower it or bodyBytesMax`,
      );
    }
  }
}

/** A line leads to one terminal: two services of one contract there would take each other's answers for their own. */
function refuseSharedContracts(config: Config, problems: string[]): void {
  for (const [index, [name, { contract, line }]] of services(config).entries()) {
    const other = services(config)
      .slice(0, index)
      .find(([, before]) => before.line === line && before.contract === contract);
    if (other === undefined || line === "") continue;
    problems.push(
      `services.${name}.line: line ${line} already has the ${contract} service ${other[0]}, and a line leads to one terminal: ` +
        `give ${name} a line of its own`,
    );
  }
}

/** The port in front of a route selects one service of a line: a `/refund` of qr's must not become one of bank's. */
function refuseSharedSelectors(config: Config, problems: string[]): void {
  for (const [name, { contract, line, linePort }] of services(config)) {
    const other = services(config).find(
      ([, each]) => each.line === line && each.contract !== contract && contracts[each.contract].port === linePort,
    );
    if (other === undefined) continue;
    problems.push(`services.${name}.linePort: ${linePort} selects ${other[0]} on line ${line}: give ${name} another one`);
  }
}

/** Two lines on one device would read each other's answers. */
function refuseSharedDevices(config: Config, problems: string[]): void {
  const lines = Object.entries(config.lines).filter(([, line]) => line.path !== "" && line.path !== emulatedPath);
  if (lines.length < 2) return;
  const seen = new Map<string, string>();
  for (const [name, line] of lines) {
    const device = realPath(line.path);
    const other = seen.get(device);
    if (other === undefined) seen.set(device, name);
    else
      problems.push(
        `lines.${name}.path: ${line.path} is also the device of line ${other}: a device leads to one terminal: remove one of the ` +
          "two lines, or give it another device",
      );
  }
}

function realPath(path: string): string {
  const tcp = readTcpAddress(path);
  if (tcp !== undefined) return `tcp:${oneHost(tcp.host)} ${tcp.port}`;
  const usb = readUsbName(path);
  if (usb !== undefined) return writeUsbName(usb) ?? path;
  try {
    return realpathSync(path);
  } catch {
    // A device that isn't plugged in yet: its name is all there is to compare.
    return path;
  }
}

/** A host in one form of the many that it may be written in (`LOCALHOST`, `127.1`, `::1`): all that lead to this box are one. */
function oneHost(host: string): string {
  const name = URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : host.toLowerCase();
  return reachableAddress(canonicalAddress(name)).replace(/^::1$/, "127.0.0.1");
}

function refuseSharedPorts(config: Config, problems: string[]): void {
  const listeners: { path: string; host: string; port: number }[] = services(config).map(([name, { host, port }]) => ({
    path: `services.${name}.port`,
    host,
    port,
  }));
  if (config.admin !== undefined) listeners.push({ path: "admin.port", ...config.admin });
  for (const [index, one] of listeners.entries()) {
    const other = listeners
      .slice(0, index)
      .find((before) => before.port === one.port && one.port !== 0 && meet(before.host, one.host));
    if (other !== undefined) {
      problems.push(`${one.path}: ${one.port} on ${one.host} is already used by ${other.path}: give each its own port`);
    }
  }
}

const wildcards: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** Whether two hosts can't both listen on one port. */
export function meet(one: string, other: string): boolean {
  return wildcards.has(one) || wildcards.has(other) || addressesOf(one).some((address) => addressesOf(other).includes(address));
}

/** An admin port that the network reaches asks for a token: it shows the keys of unknown operations, and may control an emulator. */
function refuseOpenAdmin({ admin }: Config, problems: string[]): void {
  // A file that can't be read is among the problems already.
  if (admin === undefined || isLoopback(admin.host) || admin.tokenFile !== undefined) return;
  problems.push(
    `admin.host: the network reaches ${admin.host}, and there the admin port ${needsToken}; or set admin.host ` +
      "to 127.0.0.1",
  );
}

/** A browser leaves a scheme's own port out of the origin that it sends: with it, the entry would never match. */
function refuseOrigins(settings: string, allowOrigins: readonly string[], problems: string[]): void {
  for (const [index, origin] of allowOrigins.entries()) {
    if (!/^https?:/.test(origin)) continue;
    const path = `${settings}.allowOrigins[${index}]`;
    if (!URL.canParse(origin))
      problems.push(`${path}: ${JSON.stringify(origin)} is not an origin: write it as https://till.shop`);
    else if (new URL(origin).origin !== origin) {
      problems.push(`${path}: browsers never send ${JSON.stringify(origin)}: write ${new URL(origin).origin}`);
    }
  }
}
