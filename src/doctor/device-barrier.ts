import type { Config, LineConfig } from "../config/config.ts";
import { readTcpAddress } from "../config/device-name.ts";
import type { Device } from "../device/devices.ts";
import type { ServiceAccount } from "./accounts.ts";
import { competingProgramFindings } from "./competing-programs.ts";
import { checkHolders, permissionFindings, stopCommand } from "./device.ts";
import { type Finding, finding } from "./finding.ts";
import type { Host } from "./host.ts";
import type { Processes } from "./processes.ts";
import { findService, lineStateFindings, serviceFindings } from "./service.ts";
import { tcpHolderFinding } from "./tcp-line.ts";
import type { SystemdUnits } from "./units.ts";

/** What stands in the way of a probe on a device. */

interface BarrierFacts {
  readonly host: Host;
  readonly processes: Processes;
  readonly units: SystemdUnits;
  readonly account: ServiceAccount | undefined;
}

/** The device of a line, as far as the box knows it. */
export interface LineDevice {
  readonly name: string;
  readonly config: LineConfig;
  /** Its node; undefined of a line over TCP. */
  readonly node: string | undefined;
  readonly device: Device | undefined;
}

/**
 * @param config The configuration that a running posline may have the device by; undefined if no file has the line.
 * @returns why no probe may be sent, with what to do; empty if one may. `served` holds what a running posline says of the line that it has.
 */
export async function deviceBarrier(
  { name, config: line, node, device }: LineDevice,
  config: Config | undefined,
  facts: BarrierFacts,
): Promise<{ readonly findings: readonly Finding[]; readonly served: readonly Finding[] }> {
  const { host, processes, units } = facts;
  const isServed = async () => {
    const service = config === undefined ? undefined : await findService(config, { host, processes, units });
    const ofLine = lineStateFindings({ ...line, name, ...(node === undefined ? {} : { node }) }, service);
    // One that doesn't say how its line is has a reason for that.
    return ofLine.length > 0 ? ofLine : serviceFindings(service).filter(({ level }) => level !== "ok");
  };
  const address = readTcpAddress(line.path);
  if (address !== undefined) {
    const holder = await tcpHolderFinding(name, address, { host, processes });
    if (holder.isFree) return { findings: [], served: [] };
    const cure = holder.finding.cure ?? "stop what is connected (posline: sudo systemctl stop posline.socket posline)";
    return { findings: [{ ...holder.finding, level: "bad", cure }], served: await isServed() };
  }
  if (node === undefined) return { findings: [], served: [] };
  const holders = await checkHolders(name, node, host, processes);
  const permission = await permissionFindings(name, node, { ...facts, isServed: holders.isFree === false });
  const programs = await competingProgramFindings(name, node, { device, host, processes });
  const consoles = programs.inUse ? programs.findings.filter(({ check }) => check === "console") : [];
  const findings = [...permission.findings.filter(({ level }) => level === "bad"), ...consoles];
  if (holders.isFree === true) return { findings, served: [] };
  if (holders.isFree === "unknown") {
    const hidden = finding("holder", "bad", "another user's program may have the device open", {
      line: name,
      cure: "run this command with sudo",
    });
    return { findings: [...findings, hidden], served: [] };
  }
  if (holders.finding.level === "bad") return { findings: [holders.finding], served: [] };
  const cure = await stopCommand(node, host, processes);
  return { findings: [...findings, { ...holders.finding, level: "bad", cure }], served: await isServed() };
}
