import { tcpAddressPattern, usbNamePattern } from "./device-name.ts";
import { bounds, lineDefaults } from "./limits.ts";
import { bounded } from "./schema-terms.ts";

/** The schema of one serial line. */
export const line = {
  type: "object",
  description: "One serial line.",
  additionalProperties: false,
  required: ["path"],
  properties: {
    path: {
      type: "string",
      pattern: `^(?:/[^\\u0000]+|${usbNamePattern}|${tcpAddressPattern})$`,
      maxLength: 4_096,
      examples: [
        "/dev/serial/by-id/usb-FTDI_FT232R_USB_UART_A50285BI-if00-port0",
        "usb:0403:6001:A50285BI",
        "/dev/ttyS0",
        "tcp:192.168.1.40:4001",
      ],
      description:
        "The device: its path, a name of udev's for it (/dev/serial/by-id, /dev/serial/by-path), or usb:VID:PID or " +
        "usb:VID:PID:SERIAL, where VID and PID are four hex digits and SERIAL is all that follows, in its own case. These " +
        "names survive replugging, ttyUSB0 does not. A name that fits two devices is refused when the line is opened. Or " +
        "tcp:HOST:PORT, a line over the network, where HOST is a name or an address, IPv6 in brackets.",
      $comment:
        "it must be the whole path of a device, such as /dev/ttyUSB0, or tcp:HOST:PORT for a line over the network, such as " +
        "tcp:192.168.1.40:4001 or tcp:[::1]:4001, or usb:VID:PID or usb:VID:PID:SERIAL with four hex digits for VID and for PID, " +
        "such as usb:0403:6001:A50285BI; posline ports lists them",
    },
    baudRate: bounded(bounds.baudRate, lineDefaults.baudRate, "The line's speed."),
    dataBits: { enum: [5, 6, 7, 8], default: lineDefaults.dataBits, description: "Data bits of a character." },
    parity: {
      enum: ["none", "even", "odd"],
      default: lineDefaults.parity,
      description: "The parity bit.",
      $comment: "serial drivers of Linux support no other",
    },
    stopBits: {
      enum: [1, 2],
      default: lineDefaults.stopBits,
      description: "Stop bits of a character.",
      $comment: "serial drivers of Linux support no other",
    },
    flowControl: {
      enum: ["none", "rtscts", "xonxoff"],
      default: lineDefaults.flowControl,
      description: "Flow control: none, by the RTS and CTS wires, or by XON and XOFF bytes.",
    },
    crc16: {
      enum: ["arc", "umts"],
      default: lineDefaults.crc16,
      description: "How the terminal reads CRC16-IBM: CRC-16/ARC or CRC-16/UMTS. A frame that fails is logged with both.",
    },
    recovery: {
      enum: ["barrier", "quiet"],
      default: lineDefaults.recovery,
      description: "How services are proven in step after a lost answer: by read-only questions, or by silence alone.",
    },
    lateReplyMs: bounded(
      bounds.lateReplyMs,
      lineDefaults.lateReplyMs,
      "Silence after which no late answer is expected, where it stands in for answers; ten times as long where a call had none.",
    ),
    idleProbeMs: bounded(
      bounds.idleProbeMs,
      lineDefaults.idleProbeMs,
      "Idle time after which each service that answers its probe is probed again; 0 turns it off.",
    ),
    pauseMs: bounded(
      bounds.pauseMs,
      lineDefaults.pauseMs,
      "Pause after the last byte of an answer, in which nothing is sent: some terminals hear nothing for a moment.",
    ),
    queueCallsMax: bounded(bounds.queueCallsMax, lineDefaults.queueCallsMax, "Calls that may wait for the line."),
    queueWaitMs: bounded(bounds.queueWaitMs, lineDefaults.queueWaitMs, "How long a call may wait for the line."),
    hupcl: {
      type: "boolean",
      default: lineDefaults.hupcl,
      description: "Whether DTR falls when the device is closed, which resets some terminals; false leaves it up.",
    },
    dtr: { type: "boolean", description: "Sets DTR after opening; absent leaves it to the driver, which raises it." },
    rts: { type: "boolean", description: "Sets RTS after opening; absent leaves it to the driver, which raises it." },
  },
} as const;
