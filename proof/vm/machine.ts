import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { found, must } from "./host.ts";
import { JsonSocket } from "./json-socket.ts";

/**
 * One virtual box: QEMU with a disk of its own, and a USB serial adapter whose cable ends in a unix socket here. The adapter is
 * plugged in while something is connected to that socket, so that closing it unplugs, in the middle of a byte too.
 */

/** The adapter's serial number, which its by-id link has in its name. */
export const adapterSerial = "POS0001";
export const adapterById = `/dev/serial/by-id/usb-QEMU_QEMU_USB_SERIAL_${adapterSerial}-if00-port0`;

/** All the seconds that a boot may take where nothing but emulation is at hand, and that is busy. */
const bootMs = 240_000;

const open = new Set<Machine>();
process.on("exit", () => {
  for (const machine of open) machine.powerCut();
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(1));

export class Machine {
  readonly #image: string;
  readonly #isNetworked: boolean;
  readonly #folder = mkdtempSync(join(tmpdir(), "posline-vm-"));
  #process: ChildProcess | undefined;
  #monitor: JsonSocket | undefined;
  #agent: JsonSocket | undefined;

  /**
   * A box that is off, with a disk like the image's.
   * @param isNetworked It has a network card, and this machine is at 10.0.2.2.
   */
  constructor(image: string, isNetworked = false) {
    this.#image = image;
    this.#isNetworked = isNetworked;
    must(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", join(image, "disk.img"), this.#path("disk")]);
  }

  /** The socket at the cable's other end. */
  get cable(): string {
    return this.#path("usb");
  }

  /** The socket at the other end of ttyS1, which is no adapter but a UART of the box's own. */
  get uart(): string {
    return this.#path("uart");
  }

  get agent(): JsonSocket {
    if (this.#agent === undefined) throw new Error("Cannot ask the guest: it is off");
    return this.#agent;
  }

  /** Switches it on. @returns milliseconds until the guest answered. */
  async boot(): Promise<number> {
    const began = performance.now();
    const log = openSync(this.#path("qemu.log"), "a");
    // The kernel ends it with us, even when we are killed.
    const ending = found("setpriv") === undefined ? [] : ["setpriv", "--pdeathsig", "KILL"];
    const [command = "", ...args] = [...ending, "qemu-system-x86_64", ...this.#arguments()];
    const child = spawn(command, args, { stdio: ["ignore", log, log] });
    closeSync(log);
    this.#process = child;
    open.add(this);
    child.once("error", () => {});
    child.once("exit", () => {
      this.#agent?.close();
      this.#monitor?.close();
    });
    try {
      this.#monitor = await JsonSocket.connect(this.#path("monitor"));
      await this.#monitor.ask("qmp_capabilities");
      this.#agent = await JsonSocket.connect(this.#path("agent"));
      // Answered as soon as there is somebody to do so.
      await this.#agent.ask("guest-ping", {}, bootMs);
    } catch (error) {
      throw new Error(`Cannot boot the guest: ${String(error)}\n${this.#logs()}`);
    }
    return performance.now() - began;
  }

  /** Takes the power away: what the guest had not written to its disk is lost. */
  powerCut(): void {
    this.#process?.kill("SIGKILL");
    open.delete(this);
  }

  /** The same, and waits until it is off. */
  async off(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    this.powerCut();
    await ended;
    this.#agent = undefined;
  }

  /** Switches it off and takes its disk away. */
  async remove(): Promise<void> {
    await this.off();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The speeds to which the guest's driver has set the adapter, in order. */
  baudRates(): number[] {
    const told = readFileSync(this.#path("trace.log"), "utf8").matchAll(/usb_serial_set_baud.*baud rate (\d+)/g);
    return [...told].map(([, baud]) => Number(baud));
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }

  #arguments(): readonly string[] {
    const socket = (id: string, name: string) => ["-chardev", `socket,id=${id},path=${this.#path(name)},server=on,wait=off`];
    const kernel = [
      ...["console=ttyS0", "quiet", "panic=-1", "mitigations=off", "tsc=reliable", "systemd.getty_auto=no"],
      ...["systemd.log_level=warning", "systemd.show_status=false"],
    ];
    return [
      ...["-M", "q35", ...accelerators(), "-m", "1024", "-smp", "2", "-nodefaults", "-display", "none", "-no-reboot"],
      ...["-kernel", join(this.#image, "vmlinuz"), "-initrd", join(this.#image, "initrd.gz"), "-append", kernel.join(" ")],
      // What the guest flushes is on the disk, and what it didn't isn't there after a power cut.
      ...["-drive", `file=${this.#path("disk")},if=virtio,format=qcow2,cache=writeback`],
      ...["-chardev", `file,id=console,path=${this.#path("console.log")}`, "-serial", "chardev:console"],
      ...[...socket("uart", "uart"), "-serial", "chardev:uart"],
      ...socket("monitor", "monitor"),
      ...["-mon", "chardev=monitor,mode=control"],
      ...["-device", "virtio-serial-pci"],
      ...socket("agent", "agent"),
      ...["-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"],
      ...["-device", "virtio-rng-pci", "-device", "qemu-xhci,id=usb"],
      ...socket("cable", "usb"),
      ...["-device", `usb-serial,chardev=cable,bus=usb.0,serial=${adapterSerial}`],
      ...(this.#isNetworked ? ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"] : []),
      ...["-trace", "usb_serial_set_baud", "-D", this.#path("trace.log")],
    ];
  }

  #logs(): string {
    return [this.#path("qemu.log"), this.#path("console.log")]
      .map((path) => {
        try {
          return readFileSync(path, "utf8").slice(-1500);
        } catch {
          return "";
        }
      })
      .join("\n");
  }
}

/** Hardware's help where it is asked for; emulation runs anywhere. */
function accelerators(): readonly string[] {
  if (process.env["POSLINE_VM_ACCEL"] === "kvm") return ["-accel", "kvm", "-cpu", "host"];
  return ["-accel", "tcg,thread=multi", "-cpu", "max"];
}
