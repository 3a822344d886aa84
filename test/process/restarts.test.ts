import assert from "node:assert/strict";
import { test } from "node:test";
import type { UnknownOperation } from "../../src/journal/record.ts";
import { refuseForgotten } from "../../src/process/restarts.ts";

const unknownOf = (service: string, key: string | undefined): UnknownOperation => ({
  ...{ time: "2026-11-23T08:00:00.000Z", requestId: "r", service, route: "/sale", key, amount: undefined },
  cause: "reported as unknown",
});

test("refuseForgotten() refuses to take a service away of which something is unknown, and names the last of it", () => {
  const unknown = [unknownOf("bank", "A-1"), unknownOf("bank", "A-2\u001b[2J"), unknownOf("qr", undefined)];
  assert.throws(() => refuseForgotten(["bank", "qr"], ["bank-1", "qr"], unknown), {
    message:
      "Cannot reload: services.bank was taken away or renamed, and how /sale A-2\uFFFD[2J of it ended is unknown: " +
      "wait for its end, settle it (sudo posline journal --unknown), or look at the terminal and restart posline",
  });
  assert.throws(() => refuseForgotten(["bank", "qr"], ["bank"], unknown), /services\.qr .* how \/sale of it ended/);
  refuseForgotten(["bank", "qr"], ["qr", "bank", "fiscal"], unknown);
  refuseForgotten(["bank", "qr", "fiscal"], ["bank", "qr"], unknown);
});
