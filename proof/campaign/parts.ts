import { exhaustive } from "./exhaustive.ts";
import { fuzz } from "./fuzz.ts";
import { http } from "./http.ts";
import type { Part } from "./part.ts";
import { settled, tcp } from "./settled.ts";
import { soak } from "./soak.ts";
import { worlds } from "./worlds.ts";

/** All parts, in the order in which they run. */
export const parts: readonly Part[] = [worlds, exhaustive, fuzz, http, settled, tcp, soak];
