import type { Client } from "../../client/client.ts";
import { CallError } from "../../client/errors.ts";
import { checkObject } from "../../config/check-object.ts";
import type { ContractName } from "../../core/call.ts";
import { worldOf } from "./world.ts";
import { worldText } from "./world-file.ts";
import { type WorldShape, worldSchema } from "./world-schema.ts";

/** The shop of a real terminal as a file for `--world`, as far as it tells by questions that change nothing. */

/** What each service is asked for. Whether a payment system makes a `trans` of its own, only a payment would tell. */
const questions: Readonly<Record<ContractName, (terminal: Client) => Promise<WorldShape>>> = {
  bank: async ({ bank }) => {
    const { data: offered } = await bank.supportedOperations();
    const { data: pairs } = await bank.terminals();
    const operations = offered?.operations?.filter((each) => each !== "supported_operations");
    return { bank: { ...(operations && { operations }), ...(pairs && { terminals: pairs.terminals }) } } as WorldShape;
  },
  qr: async ({ qr }) => {
    const { data } = await qr.checkConnection();
    const systems = data?.systems.map(({ name, operations }) => ({ name, operations, makesTrans: true }));
    return { qr: { ...(systems && { systems }) } } as WorldShape;
  },
  fiscal: async ({ fiscal }) => ({ fiscal: { operations: (await fiscal.supportedOperations()).operations } }) as WorldShape,
};

export interface WorldLike {
  /** The file; undefined if nothing was answered. */
  readonly text: string | undefined;
  /** What isn't as the terminal has it, as sentences. */
  readonly lacking: readonly string[];
}

export async function worldLike(terminal: Client, services: readonly ContractName[]): Promise<WorldLike> {
  const lacking: string[] = [];
  let heard: WorldShape = {};
  for (const service of services) {
    try {
      heard = { ...heard, ...(await questions[service](terminal)) };
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      lacking.push(`${service} is as in the built-in shop: ${error.message}`);
    }
  }
  // An id that JSON's numbers don't hold is left out, and said.
  const json = JSON.stringify(heard, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
  const problems: string[] = [];
  const shape = checkObject(worldSchema, json, problems) as WorldShape;
  const text = Object.keys(heard).length === 0 ? undefined : worldText(worldOf(shape));
  return { text, lacking: [...lacking, ...problems.map((each) => `left out: ${each}`)] };
}
