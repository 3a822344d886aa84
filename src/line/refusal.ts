import { type Cause, cannotOpen, heldBy, noDevice, noPermission } from "./causes.ts";
import { accessTo, type Places } from "./devices.ts";
import { holdersOf } from "./holders.ts";

/**
 * Why the system refused a device, with what mends it. The reason is looked for where it lies, in the node's owner and in the
 * processes that have it open, so that the log names the very command and not where to look for it.
 *
 * serialport's errors have no code, only the system's words in their text.
 */
export async function causeOf(error: unknown, device: string, places: Places = {}): Promise<Cause> {
  const text = error instanceof Error ? error.message : String(error);
  if (/ENOENT|No such file|ENODEV|No such device|ENXIO/i.test(text)) return noDevice(device);
  if (/EACCES|EPERM|permission denied|not permitted/i.test(text)) {
    return noPermission(device, (await accessTo(device, places)).cure);
  }
  if (/Cannot lock port|EBUSY|busy/i.test(text)) {
    const holders = await holdersOf(device, places.proc);
    return heldBy(device, holders.find(({ pid }) => pid !== process.pid) ?? holders[0]);
  }
  return cannotOpen(device, text.replace(/^Error:? ?/, ""));
}
