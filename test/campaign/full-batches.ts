import type { PartOptions, Row } from "./part.ts";
export async function fullRows(_options: PartOptions, _forMs: number): Promise<readonly Row[]> {
  return [];
}
