import { isIP } from "node:net";
import { readTcpAddress } from "../config/device-name.ts";
import { printable, quoted } from "../core/shell-text.ts";

/**
 * A trouble between posline and a device, and how to fix it. These words stand here only, so that the log, the status, the answer 503 and
 * `posline doctor` say the same of the same trouble.
 *
 * A cure is an order that a technician can carry out as it stands: a command to paste, or something to do with the hands.
 */
export interface Cause {
  /** The trouble, naming the device. */
  readonly cause: string;
  /** The fix. */
  readonly cure: string;
}

/** A process that is in the way. */
export interface Process {
  readonly pid: number;
  /** The command name; empty if it can't be known. */
  readonly name: string;
  /** The systemd service of posline's that the process runs in; absent for every other process. */
  readonly unit?: string | undefined;
  /** The process has ended, and another process has what it left. */
  readonly ended?: true;
}

/** A device of several that a name fits. */
export interface Candidate {
  /** The kernel's name: `/dev/ttyUSB0`. */
  readonly device: string;
  readonly serialNumber: string | undefined;
  /** Names that can be written as a line's path to mean this one, the best first. */
  readonly names: readonly string[];
}

/** Candidates that are listed: more than a box has sockets for would only fill the log. */
const candidatesMax = 16;

/** The udev rule that gives USB devices to the service and keeps other programs from them. */
export const udevRule = "60-posline.rules";

/** The user that the service runs as. */
export const serviceUser = "posline";

/** A cause and its cure in one sentence, for an error and a status. */
export function wordsOf({ cause, cure }: Cause): string {
  return `${cause}: ${cure}`;
}

/** Makes a cause. Names of processes and adapters are the words of others: no control character of theirs may reach a terminal. */
function said(cause: string, cure: string): Cause {
  return { cause: printable(cause), cure: printable(cure) };
}

/** Stands in the package's configuration until it names a device. */
const placeholder = "NAME-THE-DEVICE";

/** The device isn't there. `seen` are names of others that may be meant. */
export function noDevice(path: string, seen: readonly string[] = []): Cause {
  if (path.includes(placeholder)) {
    const cure = "sudo posline setup finds a terminal, and posline ports lists the devices";
    return said(`the configuration names no device yet: its path is ${path}`, cure);
  }
  const others = seen.length === 0 ? "" : `; plugged in from the same vendor: ${listed(seen)}`;
  return said(`there is no device ${path}`, `check the cable and the power${others}`);
}

/** The kernel's drivers of the adapters that most terminals come with, by vendor. */
const drivers: Readonly<Record<string, string>> = { "0403": "ftdi_sio", "10c4": "cp210x", "1a86": "ch341", "067b": "pl2303" };

/** The adapter is on the USB bus, but it has no tty. brltty is known to take such adapters for Braille displays. */
export function noDriver(path: string, vendorId: string): Cause {
  const driver = drivers[vendorId] ?? "cdc_acm";
  const cure = `sudo modprobe ${driver}; if sudo dmesg names brltty, sudo apt-get remove brltty, then plug it in again`;
  return said(`there is no device ${path}: its adapter is plugged in, but has no driver`, cure);
}

/** Several devices fit a name: the operator must say which, since a guess sends a sale to another terminal. */
export function ambiguous(path: string, candidates: readonly Candidate[]): Cause {
  const list = candidates.slice(0, candidatesMax).map(({ device, serialNumber, names }) => {
    const serial = serialNumber === undefined ? "no serial number" : `serial number ${serialNumber}`;
    return `${device} (${serial}) is ${names.map((name) => JSON.stringify(name)).join(" or ")}`;
  });
  if (candidates.length > list.length) list.push(`and ${candidates.length - list.length} more`);
  return said(`${path} matches ${candidates.length} devices`, `set path to the right one: ${list.join("; ")}`);
}

/** The name led to another device once it was open: it was replugged meanwhile. */
export function moved(path: string, device: string): Cause {
  return said(`${path} is no longer ${device}`, "it was plugged in again while it was being opened: posline tries again");
}

/** A text that is meant as a USB name, and is not one. */
export function malformedName(path: string): Cause {
  return said(`${path} is not a USB name`, "write usb:VID:PID or usb:VID:PID:SERIAL, with four hex digits for VID and for PID");
}

export function isNoSerialDevice(path: string): Cause {
  return said(`${path} is not a serial device`, `"posline ports" lists the serial devices`);
}

/** @param cure The way to get the permission, from `accessTo`. */
export function noPermission(path: string, cure = "it was just granted: posline tries again"): Cause {
  return said(`no permission to open ${path}`, cure);
}

/** The device is open in another process. */
export function heldBy(path: string, holder: Process | undefined): Cause {
  if (holder === undefined || holder.ended === true)
    return said(`${path} is in use by another process`, "sudo posline ports shows which");
  if (holder.pid === process.pid) return heldByUs(path);
  return said(`${path} is in use by ${processWords(holder)}`, stopOf(path, holder));
}

/** A lock file of the device names a living process, whose user made the file. */
export function lockedBy(path: string, holder: Process, file: string): Cause {
  if (holder.pid === process.pid) return heldByUs(path);
  if (!mayBeStopped(holder)) return wronglyLockedBy(path, holder, file);
  const cure = `${stopOf(path, holder)}; or, if it doesn't use the device, sudo rm ${quoted(file)}`;
  return said(`${path} is in use by ${processWords(holder)}`, cure);
}

/**
 * A lock file names a living process that can't have made it: the process belongs to another user than the file, or is one that posline
 * runs under. The number was given anew, or somebody made it up. Stopping that process would do harm and help nothing.
 */
export function wronglyLockedBy(path: string, holder: Process, file: string): Cause {
  const cure = `sudo rm ${quoted(file)}, unless sudo posline ports shows that the process has the device`;
  return said(`${file} says that ${processWords(holder)} uses ${path}, which is doubtful`, cure);
}

/** A lock file names a living process, and this user may not see whose it is. */
export function perhapsLockedBy(path: string, holder: Process, file: string): Cause {
  if (!mayBeStopped(holder)) return wronglyLockedBy(path, holder, file);
  const cure = `sudo posline ports shows whether it does: if not, sudo rm ${quoted(file)}; if so, ${stopOf(path, holder)}`;
  return said(`${file} says that ${processWords(holder)} uses ${path}`, cure);
}

/** A lock file may name a process, and may not be read. */
export function lockUnreadable(path: string, file: string): Cause {
  const cure = `sudo posline ports shows who has the device: if nobody has, sudo rm ${quoted(file)}`;
  return said(`${file} says that ${path} is in use, but cannot be read`, cure);
}

/** A process holds the driver's lock of the device. */
export function driverLockedBy(path: string, holder: Process): Cause {
  if (holder.pid === process.pid) return heldByUs(path);
  return said(`${path} is locked by ${processWords(holder)}`, stopOf(path, holder));
}

/** Two lines lead to one device, or the line's opening before this one takes its time to close. */
function heldByUs(path: string): Cause {
  const cause = `${path} is in use by process ${process.pid}, this posline itself`;
  return said(cause, "if this lasts, two lines are configured with this device: put their services on one line");
}

/** Another program makes the lock file anew each time that it was found stale. */
export function lockReturns(path: string, file: string): Cause {
  return said(`${path} is in use`, `${file} comes back each time it is removed: sudo posline ports shows who has the device`);
}

/** An error of the system that none of the other causes fits. */
export function cannotOpen(path: string, text: string): Cause {
  return said(`${path} cannot be opened: ${text}`, "sudo dmesg | tail shows what the kernel says of it");
}

/** The far end of a line over TCP can't be reached. @param code The system's. */
export function noConnection(path: string, code: string | undefined, text: string): Cause {
  const { host = "", port = "" } = readTcpAddress(path) ?? {};
  switch (code) {
    case "ECONNREFUSED":
    case "ECONNRESET":
      return said(
        `${path} refuses the connection`,
        `nothing listens at port ${port} of ${host}, or it serves somebody else: check the port, and ser2net or the terminal's network settings there`,
      );
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return said(
        `${path} cannot be reached: no host is known by the name ${host}`,
        "check the name, or write the address in its place",
      );
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "EADDRNOTAVAIL":
      return said(
        `${path} cannot be reached: no network leads there`,
        `check the network of this box: ip route get ${host} shows the way`,
      );
    case "EAFNOSUPPORT":
    case "EPERM":
    case "EACCES":
      return noNetwork(path);
    case "ETIMEDOUT":
      return said(`${path} does not answer`, `check that ${host} is on, and that no firewall is between: ping ${host}`);
    default:
      return said(`${path} cannot be reached: ${text}`, "check the network of this box, and the far end");
  }
}

/** The service's unit keeps the far end from it. The cure is the drop-in of docs/network-lines.md, since a box has no documentation. */
export function noNetwork(path: string): Cause {
  const { host = "" } = readTcpAddress(path) ?? {};
  // The unit's filter knows no names.
  const address = isIP(host) === 0 ? `the address of ${host}` : host;
  const lines = ["[Service]", "PrivateNetwork=no", `IPAddressAllow=${address}`];
  return said(
    `${path} cannot be reached: the service may open no connection there`,
    `sudo systemctl edit posline with the lines ${lines.join(", ")}, RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6, ` +
      "then sudo systemctl restart posline",
  );
}

/** What answers at the far end of a line over TCP is a web server. */
export function webServer(path: string): Cause {
  return said(
    `${path} is a web server, not a terminal's line`,
    "check the port: the terminal's manual names the one for a till (ECR)",
  );
}

/** True if bytes begin as those of a telnet server do: two options or more that it offers or asks for, none of which begins a frame. */
export function isTelnet(bytes: Buffer): boolean {
  return /^(?:\xff[\xfb-\xfe].){2}/s.test(bytes.toString("latin1"));
}

/** A setting of the far end that harms one frame in many: it takes the byte FF for the beginning of a command. */
export function telnet(path: string): Cause {
  return said(
    `${path} speaks telnet, which would lose about one call in a hundred`,
    "set the far end's port to raw TCP: in ser2net an accepter tcp without telnet and rfc2217, in a terminal server TCP raw",
  );
}

/** The connections to the far end don't last. @param reason Why the last one was lost. */
export function unsteady(path: string, reason: string): Cause {
  return said(
    `connections to ${path} are lost within seconds of their opening (${reason})`,
    "see whether another program or box connects to that port, as they push each other off, or whether the far end closes after " +
      "each answer; posline dials more and more slowly, down to once a minute",
  );
}

/** The box doesn't run Linux: only the emulator, the client and the tools run elsewhere. */
export function notOnLinux(path: string, platform: string): Cause {
  const cure =
    "use the emulator here (posline serve --emulated) or a line over TCP (tcp:HOST:PORT), or run posline on a Linux box";
  return said(`${path} cannot be opened: lines are driven on Linux, and this is ${platform}`, cure);
}

/** serialport's native part, which is one file for each kind of processor, can't be loaded. */
export function noNativePart(path: string, text: string): Cause {
  const [why = ""] = text.split("\n");
  return said(`${path} cannot be opened: serialport's native part can't be loaded: ${why}`, "install posline again");
}

/** The device refused a setting. */
export function cannotSetUp(path: string, text: string): Cause {
  return said(`${path} cannot be set up: ${text}`, "check the line's dtr and rts, and sudo dmesg | tail");
}

/** A change of the settings of an open device. */
export interface SettingsChange {
  /** The settings that another program changed, in words. */
  readonly changes: readonly string[];
  /** True if posline could set them again. */
  readonly isRight: boolean;
  /** The process that has the device open beside posline, if it is seen. */
  readonly holder: Process | undefined;
  /** True if not all processes could be looked into. */
  readonly hidden: boolean;
}

/** Another program changed the settings of a device that posline has open. */
export function changedSettings(path: string, { changes, isRight, holder, hidden }: SettingsChange): Cause {
  const then = isRight ? "posline set them again" : "posline could not set them again, and tries each minute";
  const changed = `another program changed settings of ${path}: ${changes.join(", ")}; ${then}`;
  if (holder !== undefined) {
    return said(`${changed}; ${processWords(holder)} has the device open too`, stopOf(path, holder));
  }
  const cure = hidden
    ? "sudo posline ports shows who has the device open"
    : "no other process has the device open any more: sudo posline doctor looks for programs that open it";
  return said(changed, cure);
}

/** The settings of an open device can't be read: HUPCL stays as it is, and changes by other programs go unnoticed. */
export function unreadSettings(path: string, text: string): Cause {
  return said(`the settings of ${path} cannot be read or set: ${text}`, "install stty (sudo apt-get install coreutils)");
}

/** ModemManager runs, and writes AT commands into a device that no rule keeps it from. */
export function modemManager(path: string): Cause {
  return said(`ModemManager may write to ${path}`, modemManagerCure);
}

const modemManagerCure = "sudo systemctl disable --now ModemManager";

/** brltty runs, and takes adapters of common kinds for Braille displays. */
export function brltty(path: string): Cause {
  return said(`brltty may take ${path} away for a Braille display`, brlttyCure);
}

const brlttyCure = "sudo apt-get remove brltty, then plug the adapter in again";

/** A login prompt runs on the device. @param unit The unit that it runs in, if known. */
export function getty(path: string, unit?: string): Cause {
  return said(`a login prompt runs on ${path}`, gettyCure(path, unit));
}

const gettyCure = (path: string, unit = `serial-getty@${nodeName(path)}.service`) => `sudo systemctl mask --now ${unit}`;

/** The kernel writes its messages to the device. */
export function kernelConsole(path: string): Cause {
  const cure =
    `take console=${nodeName(path)} out of the kernel's command line (on a Raspberry Pi: ` +
    "sudo raspi-config nonint do_serial_cons 1), then sudo reboot";
  return said(`the kernel writes its messages to ${path}`, cure);
}

/** The service's udev rule isn't on this box. */
export function noUdevRule(): Cause {
  return said(`the udev rule ${udevRule} isn't installed`, "sudo apt-get install --reinstall posline");
}

/** Orders that give a device to a user who may not open it yet. */
export const permissionCures = {
  noNode: (path: string) => `there is no node ${path}: wait for udev, or plug the device in again`,
  join: (user: string, group: string) =>
    user === serviceUser
      ? `sudo usermod -aG ${group} ${user} && sudo systemctl restart posline`
      : `sudo usermod -aG ${group} ${user}, then log in again`,
  joined: (user: string, group: string) =>
    user === serviceUser
      ? `sudo systemctl restart posline: ${user} is in group ${group} since its start`
      : `log in again: ${user} is in group ${group} since the last login`,
  /** The rule makes the service the owner of a USB device, also of one that was plugged in before the rule came. */
  rule: (path: string) => `sudo udevadm control --reload && sudo udevadm trigger --action=add --name-match=${quoted(path)}`,
  give: (path: string, group: string) =>
    `sudo chgrp ${group} ${quoted(path)} && sudo chmod 660 ${quoted(path)} (until the next replug; a udev rule makes it last)`,
  /** The unit allows the service devices of the usual drivers only. */
  unit: (major: number) => `sudo systemctl set-property posline.service "DeviceAllow=char-${major} rw"`,
  /** The user may open the device, but the container that it runs in may not. */
  container: (path: string) => `let it into the container (--device ${quoted(path)}), or into DeviceAllow= of the unit`,
};

const processWords = ({ pid, name }: Process) => (name === "" ? `process ${pid}` : `process ${pid} (${name})`);

/** True if a process may be killed: not the first one of all, nor this one, nor the one that started it. */
function mayBeStopped({ pid }: Pick<Process, "pid">): boolean {
  return pid > 1 && pid !== process.pid && pid !== process.ppid;
}

/** The command that ends processes; undefined if none of them may be stopped. */
export function killOf(pids: readonly number[]): string | undefined {
  const others = pids.filter((pid) => mayBeStopped({ pid }));
  return others.length === 0 ? undefined : `sudo kill ${others.join(" ")}`;
}

/** The command that stops a service of posline's, with the socket that would start it again. */
export function stopUnit(unit: string): string {
  return unit === "posline.service" ? "sudo systemctl stop posline.socket posline" : `sudo systemctl stop ${unit}`;
}

/** The command that stops a process: a service by its unit, since a killed one is started again. */
function stopOf(path: string, { pid, name, unit }: Process): string {
  if (unit !== undefined) return stopUnit(unit);
  if (/^ModemManager/.test(name)) return modemManagerCure;
  if (/^brltty/.test(name)) return brlttyCure;
  if (/^a?getty$/.test(name)) return gettyCure(path);
  if (name === "gpsd") return "sudo systemctl disable --now gpsd.socket gpsd.service";
  if (name === "ser2net") return "sudo systemctl disable --now ser2net";
  const kill = killOf([pid]);
  return kill === undefined ? "let it close the device, and do not kill it: posline runs under it" : `stop it: ${kill}`;
}

const nodeName = (path: string) => path.replace(/^.*\//, "");

const listed = (names: readonly string[]) => names.map((name) => JSON.stringify(name)).join(", ");
