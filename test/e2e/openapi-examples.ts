import { writeFileSync } from "node:fs";
import { contractNames } from "../../src/core/call.ts";
import { tellStory, withBridges } from "./stories.ts";

/** Writes the examples of the OpenAPI documents as the bundle and its emulator answer them now. Read the difference before you commit it. */

const stories = await Promise.all(
  contractNames.map(async (service) => {
    const told = await withBridges(service, (emulated, absent) => tellStory(service, emulated, absent));
    return [service, told.map(({ now }) => now)] as const;
  }),
);
const file = new URL("../../src/lab/openapi/examples.json", import.meta.url);
writeFileSync(file, `${JSON.stringify(Object.fromEntries(stories), undefined, 2)}\n`);
