import type { LineConfig } from "../config/config.ts";
import { readTcpAddress } from "../config/device-name.ts";
import { type SerialPortOptions, serialPort } from "./serial-port.ts";
import { tcpPort } from "./tcp-port.ts";
import type { OpenTransport } from "./transport.ts";

/** How a line's path is opened: it is dialled if it is an address, and is a serial device otherwise. */
export function openerOf(config: LineConfig, options: SerialPortOptions = {}): OpenTransport {
  const address = readTcpAddress(config.path);
  return address === undefined ? serialPort(config, options) : tcpPort(address);
}
