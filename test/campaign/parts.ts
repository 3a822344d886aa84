import type { Part } from "./part.ts";
import { settled } from "./settled.ts";
import { worlds } from "./worlds.ts";

/** All parts, in the order in which they run. */
export const parts: readonly Part[] = [worlds, settled];
