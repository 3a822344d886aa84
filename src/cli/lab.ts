import { codeOf } from "../core/error-code.ts";
import { LabMissing, type LoadLab } from "../process/lab.ts";

/** The one door from the bridge to the lab. */
export const loadLab: LoadLab = async (what) => {
  try {
    return await import("../lab/lab.ts");
  } catch (error) {
    throw codeOf(error) === "MODULE_NOT_FOUND" ? new LabMissing(what) : error;
  }
};
