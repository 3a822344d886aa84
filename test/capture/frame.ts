import type { CapturedFrame } from "../../src/capture/captured-frame.ts";

/** A sale's request, as a capture has it. */
export const frame: CapturedFrame = {
  ...{ timeMs: 1_795_341_929_414.616, line: "till", direction: "out", role: "request", service: "bank", route: "/sale" },
  ...{ requestId: "r-1", framing: "length", wireBytes: 63, checksum: "good", sums: undefined, outcome: undefined },
  ...{ reason: undefined, masked: true, payload: Buffer.from("/sale") },
};
