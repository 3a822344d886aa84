import type { Part } from "./part.ts";
import { worlds } from "./worlds.ts";

/** All parts, in the order in which they run. */
export const parts: readonly Part[] = [worlds];
