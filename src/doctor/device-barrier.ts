import type { Config, LineConfig } from "../config/config.ts";
import { readTcpAddress } from "../config/device-name.ts";
import type { Device } from "../device/devices.ts";
import type { BoxFacts } from "./accounts.ts";
import { competingProgramFindings } from "./competing-programs.ts";
import { checkHolders, permissionFindings, seeAll, stopCommand } from "./device.ts";
import { type Finding, finding } from "./finding.ts";
import { findService, lineStateFindings, serviceFindings } from "./service.ts";
import { tcpHolderFinding } from "./tcp-line.ts";

/** What stands in the way of a probe on a device. A probe goes only to a device that surely nobody uses. */

/** The device of a line, as far as the box knows it. */
export interface LineDevice {
  readonly name: string;
  readonly config: LineConfig;
  /** Its node; undefined of a line over TCP. */
  readonly node: string | undefined;
  readonly device: Device | undefined;
}

export interface DeviceCheck {
  /** Who has it open, who may open it, and what else on this box uses it. */
  readonly findings: readonly Finding[];
  /** Why no probe may be sent, with what to do; undefined if one may. */
  readonly barrier: Finding | undefined;
}

export async function checkDevice({ name, config, node, device }: LineDevice, facts: BoxFacts): Promise<DeviceCheck> {
  const { host, processes } = facts;
  const address = readTcpAddress(config.path);
  if (address !== undefined) {
    const holder = await tcpHolderFinding(name, address, facts);
    const cure = "stop what is connected (posline: sudo systemctl stop posline.socket posline), then this command again";
    const barrier = notProbed(name, "another connection is there, and a second one may cut it", cure);
    return { findings: [holder.finding], barrier: holder.isFree ? undefined : barrier };
  }
  if (node === undefined) return { findings: [], barrier: notProbed(name, "there is no device to test") };
  const holders = await checkHolders(name, node, host, processes);
  const isServed = holders.isFree === false && holders.finding.level === "ok";
  const permission = await permissionFindings(name, node, { ...facts, isServed });
  const programs = await competingProgramFindings(name, node, device, facts);
  const barrier = async () => {
    if (holders.isFree === false) {
      const cure = `${await stopCommand(node, host, processes)}, then this command again, for a full test`;
      return notProbed(name, "the device is in use", cure);
    }
    if (!permission.mine) return notProbed(name, "this user may not open the device", seeAll);
    if (programs.inUse) return notProbed(name, "the device is a console");
    if (holders.isFree === true) return undefined;
    return notProbed(name, "another user's program may have the device open, and a probe would disturb it", seeAll);
  };
  return { findings: [holders.finding, ...permission.findings, ...programs.findings], barrier: await barrier() };
}

export function notProbed(line: string, why: string, cure?: string): Finding {
  return finding("answer", "skipped", `terminal not tested: ${why}`, { line, ...(cure === undefined ? {} : { cure }) });
}

/** What a running posline says of a line that it has; of its service where it says nothing of the line, which has a reason. */
export async function servedFindings(
  { name, config: line, node }: LineDevice,
  config: Config,
  facts: BoxFacts,
): Promise<readonly Finding[]> {
  const service = await findService(config, facts);
  const ofLine = lineStateFindings({ ...line, name, ...(node === undefined ? {} : { node }) }, service);
  return ofLine.length > 0 ? ofLine : serviceFindings(service).filter(({ level }) => level !== "ok");
}
