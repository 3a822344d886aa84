import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { after } from "node:test";
import type { Places } from "../../src/device/devices.ts";

const boxes = mkdtempSync(join(tmpdir(), "posline-devices-"));
after(() => rmSync(boxes, { recursive: true }));

/** A USB adapter in a socket. */
export interface Adapter {
  /** `1-1.2`. */
  readonly socket: string;
  readonly vendorId?: string;
  readonly productId?: string;
  readonly serialNumber?: string;
  /** `node` is a real device that the tty's node leads to. */
  readonly ttys: readonly { readonly name: string; readonly node?: string }[];
}

/** A box in a folder: sysfs, device nodes and a process table, as files and links. */
export class Box {
  readonly root = mkdtempSync(join(boxes, "box-"));
  readonly places: Places & { readonly sys: string; readonly dev: string; readonly proc: string; readonly groups: string } = {
    sys: join(this.root, "sys"),
    dev: join(this.root, "dev"),
    proc: join(this.root, "proc"),
    groups: join(this.root, "group"),
    user: "till",
  };

  constructor() {
    for (const folder of ["sys/class/tty", "dev/serial/by-id", "dev/serial/by-path", "proc/812/fd"]) {
      mkdirSync(join(this.root, folder), { recursive: true });
    }
    this.write("group", `root:x:0:\ndialout:x:${this.gid}:someone\n`);
    this.write("proc/812/comm", "ModemManager\n");
  }

  /** A group that a file of this user may belong to, other than root's where that is possible. */
  get gid(): number {
    return process.getuid?.() === 0 ? 20 : (process.getgid?.() ?? 0);
  }

  write(path: string, text: string): void {
    const whole = join(this.root, path);
    mkdirSync(dirname(whole), { recursive: true });
    writeFileSync(whole, text);
  }

  link(path: string, target: string): void {
    const whole = join(this.root, path);
    mkdirSync(dirname(whole), { recursive: true });
    symlinkSync(relative(dirname(whole), join(this.root, target)), whole);
  }

  /** A tty whose device is at a place below sys/devices, with its node: a file, or a link to a real device. */
  tty(name: string, device: string, driver?: string, node?: string): void {
    mkdirSync(join(this.root, "sys/devices", device), { recursive: true });
    mkdirSync(join(this.root, "sys/class/tty", name), { recursive: true });
    this.link(`sys/class/tty/${name}/device`, `sys/devices/${device}`);
    if (driver !== undefined) this.link(`sys/devices/${device}/driver`, `sys/bus/drivers/${driver}`);
    const path = join(this.places.dev, name);
    if (node !== undefined) {
      symlinkSync(node, path);
      return;
    }
    this.write(`dev/${name}`, "");
    if (process.getuid?.() === 0) chownSync(path, 0, this.gid);
    chmodSync(path, 0o660);
  }

  /** Plugs a USB adapter in, with the names that udev gives to each of its ttys. */
  plug(adapter: Adapter): void {
    const { socket, vendorId = "0403", productId = "6001", serialNumber, ttys } = adapter;
    const root = `pci0000:00/usb1/${socket}`;
    for (const [name, value] of Object.entries({ idVendor: vendorId, idProduct: productId, serial: serialNumber })) {
      if (value !== undefined) this.write(`sys/devices/${root}/${name}`, `${value}\n`);
    }
    this.link(`sys/bus/usb/devices/${socket}`, `sys/devices/${root}`);
    for (const [index, { name, node }] of ttys.entries()) {
      const part = `${socket}:1.${index}`;
      this.write(`sys/devices/${root}/${part}/bInterfaceNumber`, `0${index}\n`);
      this.write(`sys/devices/${root}/${part}/${name}/port_number`, "0\n");
      this.tty(name, `${root}/${part}/${name}`, undefined, node);
      // Of equal adapters, the last one has the name.
      const id = `dev/serial/by-id/usb-${vendorId}_${productId}_${serialNumber?.replace(/\W/g, "_") ?? ""}-if0${index}-port0`;
      rmSync(join(this.root, id), { force: true });
      this.link(id, `dev/${name}`);
      this.link(`dev/serial/by-path/pci-0000:00:14.0-usb-0:${socket}:1.${index}-port0`, `dev/${name}`);
    }
  }

  /** Takes an adapter away, with its names. */
  unplug({ socket, ttys }: Adapter): void {
    const folders = [`sys/devices/pci0000:00/usb1/${socket}`, `sys/bus/usb/devices/${socket}`];
    const nodes = ttys.flatMap(({ name }) => [`dev/${name}`, `sys/class/tty/${name}`]);
    for (const path of [...folders, ...nodes]) rmSync(join(this.root, path), { recursive: true });
    for (const folder of ["dev/serial/by-id", "dev/serial/by-path"]) {
      for (const name of readdirSync(join(this.root, folder))) {
        const path = join(this.root, folder, name);
        if (ttys.some((tty) => readlinkSync(path).endsWith(tty.name))) rmSync(path);
      }
    }
  }
}
