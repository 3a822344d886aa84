import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { after } from "node:test";
import { noDevice } from "../../src/device/open-errors.ts";
import { OpenError } from "../../src/device/transport.ts";
import type { CommandResult, HostPlaces } from "../../src/doctor/host.ts";

const boxes = mkdtempSync(join(tmpdir(), "posline-doctor-"));
after(() => rmSync(boxes, { recursive: true }));

const usb = "pci0000:00/usb1/1-1";

/** A group that a file of this user may belong to, other than root's where that is possible. */
const serialGid = process.getuid?.() === 0 ? 20 : (process.getgid?.() ?? 0);

/** A box in a folder: its trees as files and links, and its commands' answers as a table. */
export class FakeHost {
  readonly root = mkdtempSync(join(boxes, "box-"));
  /** Output by the whole command line; what isn't there can't be run. */
  readonly commands = new Map<string, string>();
  /** Answers by URL. */
  readonly web = new Map<string, { readonly status: number; readonly body: string }>();
  /** What a request must carry as Authorization. */
  authorization: string | undefined;
  /** Whether this user may open devices. */
  mayOpen = true;
  places: HostPlaces;

  constructor() {
    for (const folder of ["sys/class/tty", "dev/serial/by-id", "proc", "etc/posline", "run", "usr/lib/udev/rules.d"]) {
      mkdirSync(join(this.root, folder), { recursive: true });
    }
    this.write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n");
    this.write("etc/group", `root:x:0:\ndialout:x:${serialGid}:\n`);
    this.write("proc/cmdline", "root=/dev/sda1 console=tty0 quiet\n");
    this.write(
      "proc/net/tcp",
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n",
    );
    this.write("run/systemd/timesync/synchronized", "");
    this.places = {
      sys: this.at("sys"),
      dev: this.at("dev"),
      proc: this.at("proc"),
      etc: this.at("etc"),
      run: this.at("run"),
      usr: this.at("usr"),
      state: this.at("state"),
      user: "till",
      env: {},
      now: () => new Date("2026-11-20T10:33:08.336Z"),
      nodeVersion: "20.20.2",
      access: async () => {
        if (!this.mayOpen) throw new Error("EACCES");
      },
      resolve: async (path) => {
        if (path.endsWith("gone")) throw new OpenError(noDevice(path));
        return path;
      },
      command: async (program, args): Promise<CommandResult> => {
        const out = this.commands.get([program, ...args].join(" "));
        return out === undefined ? { ran: false, why: `there is no ${program} here` } : { ran: true, code: 0, out };
      },
      httpGet: async (url, headers) =>
        this.authorization === headers?.["Authorization"] ? this.web.get(url) : { status: 401, body: "{}" },
      open: async () => async () => {
        throw new OpenError("the test opens no device: give it one");
      },
    };
  }

  at(path: string): string {
    return join(this.root, path);
  }

  write(path: string, text: string): this {
    const whole = this.at(path);
    mkdirSync(dirname(whole), { recursive: true });
    writeFileSync(whole, text);
    return this;
  }

  link(path: string, target: string): this {
    const whole = this.at(path);
    mkdirSync(dirname(whole), { recursive: true });
    symlinkSync(relative(dirname(whole), this.at(target)), whole);
    return this;
  }

  /** A tty with a node and hardware behind it. */
  tty(
    name: string,
    device: string,
    { mode = 0o660, gid = serialGid }: { readonly mode?: number; readonly gid?: number } = {},
  ): string {
    mkdirSync(this.at(`sys/devices/${device}`), { recursive: true });
    this.link(`sys/class/tty/${name}/device`, `sys/devices/${device}`);
    this.write(`dev/${name}`, "");
    const node = this.at(`dev/${name}`);
    if (process.getuid?.() === 0) chownSync(node, 0, gid);
    chmodSync(node, mode);
    return node;
  }

  /** An FTDI adapter as ttyUSB0, set as posline's rules set it. */
  ftdi(): string {
    const node = this.tty("ttyUSB0", `${usb}/1-1:1.0/ttyUSB0`);
    this.link(`sys/devices/${usb}/1-1:1.0/ttyUSB0/driver`, "sys/bus/usb-serial/drivers/ftdi_sio");
    const words = {
      idVendor: "0403",
      idProduct: "6001",
      serial: "A50285BI",
      manufacturer: "FTDI",
      product: "FT232R",
      dev: "189:4",
    };
    for (const [key, value] of Object.entries(words)) this.write(`sys/devices/${usb}/${key}`, `${value}\n`);
    this.write(`sys/devices/${usb}/power/control`, "on\n");
    this.write(`sys/devices/${usb}/1-1:1.0/ttyUSB0/latency_timer`, "1\n");
    this.write("sys/class/tty/ttyUSB0/dev", "188:0\n");
    this.write("usr/lib/udev/rules.d/60-posline.rules", "# here\n");
    return node;
  }

  /** The adapter's file, from its folder on. */
  adapter(file: string, text: string): this {
    return this.write(`sys/devices/${usb}/${file}`, text);
  }

  /** A process, with its unit and what it has open. */
  running(
    pid: number,
    name: string,
    { args = [name], unit, opens = [] }: { readonly args?: string[]; readonly unit?: string; readonly opens?: string[] } = {},
  ): this {
    this.write(`proc/${pid}/comm`, `${name}\n`);
    this.write(`proc/${pid}/cmdline`, `${args.join("\0")}\0`);
    this.write(`proc/${pid}/cgroup`, `0::/system.slice/${unit ?? "session.scope"}\n`);
    mkdirSync(this.at(`proc/${pid}/fd`), { recursive: true });
    for (const [index, target] of opens.entries()) symlinkSync(target, this.at(`proc/${pid}/fd/${index}`));
    return this;
  }

  /** A socket that listens: its address in the kernel's words. */
  listening(address: string, port: number, inode: number, table = "tcp"): this {
    const hex = port.toString(16).toUpperCase().padStart(4, "0");
    const rest = table === "tcp" ? "00000000:0000" : `${"0".repeat(32)}:0000`;
    const row = `   0: ${address}:${hex} ${rest} 0A 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0000000000000000 100 0 0 10 0`;
    return this.write(`proc/net/${table}`, `  sl  local_address\n${row}\n`);
  }

  /** The service is installed. */
  installed({ active = "active", socket = "active", more = "" } = {}): this {
    this.write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\nposline:x:990:990::/var/lib/posline:/usr/sbin/nologin\n");
    this.write("etc/group", `root:x:0:\ndialout:x:${serialGid}:posline\nposline:x:990:\n`);
    const properties =
      "LoadState,ActiveState,Listen,SupplementaryGroups,DevicePolicy,DeviceAllow," +
      "PrivateNetwork,RestrictAddressFamilies,IPAddressAllow,IPAddressDeny";
    this.commands.set(
      `systemctl show posline.service --property=${properties}`,
      `LoadState=loaded\nActiveState=${active}\nSupplementaryGroups=\nDevicePolicy=closed\nDeviceAllow=char-188 rw\nDeviceAllow=char-4 rw\n${more}`,
    );
    this.commands.set(
      `systemctl show posline.socket --property=${properties}`,
      `LoadState=loaded\nActiveState=${socket}\nListen=127.0.0.1:8008 (Stream)\nListen=127.0.0.1:8888 (Stream)\n`,
    );
    return this;
  }

  /** Writes the configuration's file where the service has it. */
  config(config: object): this {
    return this.write("etc/posline/posline.json", JSON.stringify(config));
  }
}
