import { BlockList, isIP } from "node:net";
import type { Host } from "./host.ts";

/** The state of posline's units, as systemd tells it. */
export interface SystemdUnits {
  /** False where there is no systemd to ask: a container, another init. */
  readonly present: boolean;
  /** Why there is no systemd to ask. */
  readonly why: string;
  /** `active`, `inactive`, `failed`, ...; undefined when the unit isn't installed. */
  readonly service: string | undefined;
  readonly socket: string | undefined;
  /** The addresses that systemd listens on for posline: `127.0.0.1:8888`. */
  readonly listens: readonly string[];
  /** Groups that the service has beside its user's. */
  readonly groups: readonly string[];
  /** Devices that the service may open: all, or the kinds listed, as majors or names of drivers. */
  readonly devices: readonly string[] | "all";
  /** True of an address to which the service may open a connection. */
  readonly mayReach: (address: string) => boolean;
}

/** True of the state of a unit that serves. */
export const isServing = (state: string) => state === "active" || state === "reloading";

const properties =
  "LoadState,ActiveState,Listen,SupplementaryGroups,DevicePolicy,DeviceAllow," +
  "PrivateNetwork,RestrictAddressFamilies,IPAddressAllow,IPAddressDeny";

export async function readUnits({ command }: Host): Promise<SystemdUnits> {
  const show = async (unit: string) => {
    const result = await command("systemctl", ["show", unit, `--property=${properties}`]);
    if (!result.ran) return result.why;
    return result.code === 0 ? propertiesIn(result.out) : "systemd does not run here";
  };
  const service = await show("posline.service");
  if (typeof service === "string") return { ...noUnits, why: service };
  const socket = await show("posline.socket");
  const ofSocket = typeof socket === "string" ? new Map<string, string>() : socket;
  const closed = /^(?:closed|strict)$/.test(service.get("DevicePolicy") ?? "");
  return {
    present: true,
    why: "",
    service: stateIn(service),
    socket: stateIn(ofSocket),
    listens: [...(ofSocket.get("Listen") ?? "").matchAll(/(\S+) \(Stream\)/g)].map(([, address = ""]) => address),
    groups: (service.get("SupplementaryGroups") ?? "").split(" ").filter((group) => group !== ""),
    devices: closed
      ? [...(service.get("DeviceAllow") ?? "").matchAll(/(\S+) r?w?m?(?:\s|$)/g)].map(([, device = ""]) => device)
      : "all",
    mayReach: reachIn(service),
  };
}

/** What the unit lets its service reach: it has the box's network, the address's family, and no filter against the address. */
function reachIn(found: ReadonlyMap<string, string>): SystemdUnits["mayReach"] {
  const families = found.get("RestrictAddressFamilies") ?? "";
  const [allowed, denied] = [subnetsIn(found.get("IPAddressAllow")), subnetsIn(found.get("IPAddressDeny"))];
  return (address) => {
    const family = isIP(address) === 6 ? "ipv6" : "ipv4";
    const isListed = families
      .replace("~", "")
      .split(" ")
      .includes(family === "ipv6" ? "AF_INET6" : "AF_INET");
    if (found.get("PrivateNetwork") === "yes") return false;
    if (families !== "" && isListed === families.startsWith("~")) return false;
    return allowed.check(address, family) || !denied.check(address, family);
  };
}

/** `192.168.1.0/24 fd00::/8`. */
function subnetsIn(text = ""): BlockList {
  const list = new BlockList();
  for (const [, address = "", bits] of text.matchAll(/(\S+)\/(\d+)/g)) {
    list.addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/** The units of a host of which nothing is known. */
export const noUnits: SystemdUnits = {
  present: false,
  why: "",
  service: undefined,
  socket: undefined,
  listens: [],
  groups: [],
  devices: "all",
  mayReach: () => true,
};

/** `Listen` and `DeviceAllow` appear once for each of their values. */
function propertiesIn(out: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of out.split("\n")) {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (key === undefined || value === undefined) continue;
    const before = found.get(key);
    found.set(key, before === undefined ? value : `${before} ${value}`);
  }
  return found;
}

const stateIn = (found: ReadonlyMap<string, string>) =>
  found.get("LoadState") === "loaded" ? found.get("ActiveState") : undefined;
